from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hookloop.core import Every, Never
from hookloop.errors import ConfigError, NoEpisodesError, UnknownNameError
from hookloop.evaluation import EvaluationTask, LessonScore, Played, PlayedEpisode, Score, Wanted, evaluate


class FakePlayer:
    """Gives each simulation returns that were thought of beforehand."""

    def __init__(self, returns: dict[Any, list[float]], failed: int = 0) -> None:
        self.returns, self.failed = returns, failed
        self.asked: list[tuple[Any, Wanted]] = []

    def play(self, env: Any, wanted: Wanted) -> Played:
        self.asked.append((env, wanted))
        found = [PlayedEpisode(k, value, 10, "terminated") for k, value in enumerate(self.returns[env])]
        return Played(tuple(found), self.failed, "too slow" if self.failed else "")


def curriculum(*ids: str) -> Any:
    return SimpleNamespace(lessons={each: SimpleNamespace(env=each.upper()) for each in ids})


def test_each_scope_stands_for_its_simulations() -> None:
    lessons = curriculum("a", "b", "c")

    assert EvaluationTask().simulations() == {("training", "training"): None}
    assert EvaluationTask(scope="lesson").simulations(lessons, "b") == {("lesson", "b"): "B"}
    assert list(EvaluationTask(scope="lessons").simulations(lessons)) == [("lessons", each) for each in "abc"]
    assert EvaluationTask(scope="suite", suite={"hard": "X"}).simulations() == {("suite", "hard"): "X"}
    both = EvaluationTask(suite={"hard": "X"}, category="own").simulations()
    assert both == {("own", "training"): None, ("suite", "hard"): "X"}


def test_lessons_are_sampled_by_the_seed() -> None:
    task = EvaluationTask(scope="sampled", num_sampled=2)
    lessons = curriculum(*"abcdefgh")

    drawn = [tuple(task.simulations(lessons, seed=seed)) for seed in range(10)]

    assert all(len(each) == 2 for each in drawn)
    assert len(set(drawn)) > 3
    assert drawn[0] == tuple(task.simulations(lessons, seed=0))


def test_an_unknown_lesson_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no lesson 'addtion' for the evaluation 'eval'. Did you mean 'addition'"
    ):
        EvaluationTask(scope="lesson").simulations(curriculum("addition"), "addtion")


@pytest.mark.parametrize(("options", "message"), [
    ({"episodes": 0}, "needs episodes of at least 1, got 0"),
    ({"record": -1}, "needs record of at least 0"),
    ({"scope": "lesons"}, "Did you mean 'lessons'"),
    ({"scope": "suite"}, "no simulation in its suite"),
    ({"max_seconds": 0}, "max_seconds above 0"),
])  # fmt: skip
def test_a_task_that_means_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        EvaluationTask(**options)


def test_without_a_curriculum_there_are_no_lessons() -> None:
    with pytest.raises(ConfigError, match="needs a curriculum"):
        EvaluationTask(scope="lessons").simulations()
    with pytest.raises(ConfigError, match="there is none now"):
        EvaluationTask(scope="lesson").simulations(curriculum("a"))


def test_a_schedule_is_a_text_a_value_or_never() -> None:
    assert EvaluationTask(schedule="every 5 epochs").when == Every(5, "epochs")
    assert EvaluationTask(schedule=Every(5)).when == Every(5)
    assert EvaluationTask().when == Never()


def test_all_evaluations_of_a_run_meet_the_same_episodes_and_other_runs_and_tasks_meet_others() -> None:
    seeds = {EvaluationTask(name=name).first_seed(run) for name in ("a", "b") for run in (0, 1)}

    assert len(seeds) == 4
    assert EvaluationTask(name="a").first_seed(0) in seeds
    assert EvaluationTask(seed=17).first_seed(99) == 17


def test_a_result_has_scores_by_category_and_name_and_averages_over_simulations() -> None:
    task = EvaluationTask(name="full", scope="lessons", suite={"hard": "H"}, episodes=3)
    player = FakePlayer({"A": [1.0, 2.0, 3.0], "B": [0.0, 0.0, 6.0], "H": [-1.0, -1.0, -1.0]})

    result = evaluate(
        task, player, task.simulations(curriculum("a", "b")), run_seed=1, clocks={"epochs": 5, "policy_version": 4}
    )

    assert {key: score.mean for key, score in result.scores.items()} == {
        ("lessons", "a"): 2.0, ("lessons", "b"): 2.0, ("suite", "hard"): -1.0,
    }  # fmt: skip
    metrics = result.metrics()
    assert metrics["return/mean"] == 1.0
    assert metrics["lessons/return/mean"] == 2.0
    assert metrics["b/success_rate"] == pytest.approx(1 / 3)
    assert metrics["episodes"] == 9
    assert (result.policy_version, result.episodes) == (4, 9)
    assert [name for name, _, _ in result.rows()] == ["full/a", "full/b", "full/hard"]


def test_an_episode_that_failed_is_no_success() -> None:
    score = Score.of(Played((PlayedEpisode(0, 1.0, 5, "terminated"),), 3, "too slow"), what="x", seed=0)

    assert score.success_rate == 0.25
    assert score.for_lesson() == LessonScore(successes=1, episodes=4, mean_return=1.0)
    assert score.for_lesson(success_return=1.0).successes == 0
    assert score.statistics()["failed"] == 3


def test_an_evaluation_without_an_episode_is_an_error_that_says_why() -> None:
    task = EvaluationTask(name="micro")

    with pytest.raises(NoEpisodesError, match=r"'micro' finished none of its 4 episodes: too slow. Give it more time"):
        evaluate(task, FakePlayer({None: []}, failed=4), task.simulations(), run_seed=0, clocks={})
