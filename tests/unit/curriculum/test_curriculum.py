"""Lessons open, graduate and regress; nothing of that is lost in a save."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hookloop.curriculum import Curriculum, CurriculumConfig, Dependency, EvaluationStats, Lesson
from hookloop.errors import HookStateError, UnknownNameError

WON, LOST = 1.0, 0.0


def ladder(*names: str, **options: Any) -> CurriculumConfig:
    lessons = {
        name: Lesson(dependencies=tuple(Dependency(lesson=before) for before in names[max(place - 1, 0) : place]))
        for place, name in enumerate(names)
    }
    return CurriculumConfig(
        lessons=lessons, **{"plateau_window": 5, "plateau_episodes": 4, "minimum_episodes": 5, **options}
    )


def graph(**dependencies: list[str]) -> CurriculumConfig:
    return CurriculumConfig(
        lessons={
            name: Lesson(dependencies=tuple(Dependency(lesson=each) for each in before))
            for name, before in dependencies.items()
        }
    )


def mastered(curriculum: Curriculum, lesson: str) -> None:
    for _ in range(40):
        curriculum.update_from_training({lesson: [WON] * 5})
    curriculum.update_from_evaluation({lesson: EvaluationStats(successes=64, episodes=64, mean_return=1.0)})


def test_only_lessons_that_depend_on_nothing_are_open_at_first() -> None:
    curriculum = Curriculum(ladder("walk", "run"))

    assert curriculum.states == {"walk": "unlocked", "run": "locked"}
    assert curriculum.probabilities() == {"walk": 1.0}


def test_a_lesson_opens_when_the_one_before_it_is_good_enough() -> None:
    curriculum = Curriculum(ladder("walk", "run"))
    curriculum.drain_changes()

    curriculum.update_from_training({"walk": [LOST] * 20})
    assert curriculum.state("run") == "locked"
    curriculum.update_from_training({"walk": [WON] * 20})

    assert curriculum.state("run") == "unlocked"
    (change,) = curriculum.drain_changes()
    assert (change.lesson, change.change) == ("run", "unlocked")
    assert "walk succeeds 0.89, 0.50 is asked" in change.why


def test_a_few_lucky_episodes_open_nothing() -> None:
    curriculum = Curriculum(ladder("walk", "run", minimum_episodes=5))

    curriculum.update_from_training({"walk": [WON] * 4})

    assert curriculum.state("run") == "locked"


def test_all_dependencies_count_each_with_its_own_threshold() -> None:
    lessons = {
        "one": Lesson(),
        "two": Lesson(),
        "both": Lesson(dependencies=(Dependency(lesson="one"), Dependency(lesson="two", threshold=0.95))),
    }
    curriculum = Curriculum(CurriculumConfig(lessons=lessons, minimum_episodes=1))

    curriculum.update_from_training({"one": [WON] * 10, "two": [WON] * 10})
    assert curriculum.state("both") == "locked"
    curriculum.update_from_training({"two": [WON] * 30})

    assert curriculum.state("both") == "unlocked"


def test_training_alone_never_graduates_a_lesson() -> None:
    curriculum = Curriculum(ladder("walk"))

    for _ in range(100):
        curriculum.update_from_training({"walk": [WON] * 5})

    assert curriculum.state("walk") == "unlocked"


def test_a_lesson_graduates_by_evaluation_threshold_and_plateau() -> None:
    curriculum = Curriculum(ladder("walk"))

    mastered(curriculum, "walk")

    assert curriculum.state("walk") == "graduated"


@pytest.mark.parametrize("successes", [0, 57])
def test_an_evaluation_below_the_threshold_does_not_graduate(successes: int) -> None:
    curriculum = Curriculum(ladder("walk"))
    for _ in range(40):
        curriculum.update_from_training({"walk": [WON] * 5})

    curriculum.update_from_evaluation({"walk": EvaluationStats(successes=successes, episodes=64)})

    assert curriculum.state("walk") == "unlocked"


def test_a_lesson_that_still_improves_does_not_graduate() -> None:
    curriculum = Curriculum(ladder("walk"))
    for won in range(5):
        curriculum.update_from_training({"walk": [WON] * won + [LOST] * (4 - won)})

    curriculum.update_from_evaluation({"walk": EvaluationStats(successes=64, episodes=64)})

    assert curriculum.state("walk") == "unlocked"


def test_a_graduated_lesson_regresses_well_below_its_threshold_and_may_graduate_again() -> None:
    curriculum = Curriculum(ladder("walk"))
    mastered(curriculum, "walk")

    curriculum.update_from_evaluation({"walk": EvaluationStats(successes=50, episodes=64)})  # 0.78: within the margin
    assert curriculum.state("walk") == "graduated"
    curriculum.update_from_evaluation({"walk": EvaluationStats(successes=40, episodes=64)})
    assert curriculum.state("walk") == "regressed"
    curriculum.update_from_evaluation({"walk": EvaluationStats(successes=64, episodes=64)})
    assert curriculum.state("walk") == "graduated"

    assert [change.change for change in curriculum.drain_changes()] == [
        "unlocked",
        "graduated",
        "regressed",
        "graduated",
    ]


def test_what_training_and_evaluation_say_is_kept_apart() -> None:
    curriculum = Curriculum(ladder("walk"))

    curriculum.update_from_training({"walk": [LOST] * 10})
    curriculum.update_from_evaluation({"walk": EvaluationStats(successes=32, episodes=64, mean_return=3.0)})

    assert curriculum.success("walk") == pytest.approx(0.5 * 0.9**10)
    assert curriculum.evaluated_success("walk") == 0.5
    assert (curriculum.training["walk"].episodes, curriculum.evaluation["walk"].episodes) == (10, 64)
    assert curriculum.evaluation["walk"].mean_return == 3.0


def test_an_evaluation_without_episodes_says_nothing() -> None:
    curriculum = Curriculum(ladder("walk"))

    curriculum.update_from_evaluation({"walk": EvaluationStats(successes=0, episodes=0)})

    assert curriculum.evaluated_success("walk") is None


def test_a_return_that_is_not_finite_is_no_episode() -> None:
    curriculum = Curriculum(ladder("walk"))

    curriculum.update_from_training({"walk": [float("nan"), float("inf"), WON]})

    assert curriculum.training["walk"].episodes == 1


def test_a_mastered_lesson_keeps_the_floor() -> None:
    curriculum = Curriculum(ladder("walk", "run", minimum_sample_probability=0.1))
    mastered(curriculum, "walk")

    assert curriculum.probabilities() == pytest.approx({"walk": 0.1, "run": 0.9})


def test_uniform_choice_opens_all_lessons_and_likes_them_alike() -> None:
    curriculum = Curriculum(ladder("walk", "run", "fly", strategy="uniform"))
    curriculum.update_from_training({"walk": [WON] * 50})

    assert set(curriculum.states.values()) == {"unlocked"}
    assert curriculum.probabilities() == pytest.approx(dict.fromkeys(("walk", "run", "fly"), 1 / 3))


def test_the_metrics_name_every_lesson() -> None:
    curriculum = Curriculum(ladder("walk", "run"))
    mastered(curriculum, "walk")

    metrics = curriculum.metrics()

    assert metrics["curriculum/walk/state"] == 2
    assert metrics["curriculum/run/episodes"] == 0
    assert metrics["curriculum/walk/evaluated_success"] == 1.0
    assert metrics["curriculum/mastery"] == pytest.approx(0.5)
    assert not {"curriculum/run/evaluated_success", "curriculum/run/success"} & set(metrics)


@pytest.mark.parametrize(
    "act",
    [
        lambda curriculum: curriculum.state("wolk"),
        lambda curriculum: curriculum.success("wolk"),
        lambda curriculum: curriculum.update_from_training({"wolk": [WON]}),
        lambda curriculum: curriculum.update_from_evaluation({"wolk": EvaluationStats(1, 1)}),
    ],
)
def test_an_unknown_lesson_is_answered_with_the_nearest_name(act: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"no lesson 'wolk' in the curriculum\. Did you mean 'walk'"):
        act(Curriculum(ladder("walk", "run")))


def test_an_unknown_dependency_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(
        ValidationError, match=r"There is no lesson 'wolk' among the dependencies of 'run'\. Did you mean"
    ):
        graph(walk=[], run=["wolk"])


@pytest.mark.parametrize(
    ("dependencies", "circle"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"free": [], "a": ["free", "c"], "b": ["a"], "c": ["b"]}, "a -> c -> b -> a"),
    ],
)
def test_lessons_that_wait_for_each_other_are_refused(dependencies: dict[str, list[str]], circle: str) -> None:
    with pytest.raises(ValidationError, match=f"none could ever open: {circle} "):
        graph(**dependencies)


@given(st.dictionaries(st.integers(0, 7), st.sets(st.integers(0, 7), max_size=3), min_size=8, max_size=8))
def test_a_cycle_is_found_exactly_where_there_is_no_order(before: dict[int, set[int]]) -> None:
    open_lessons: set[int] = set()
    while True:  # the plain way: open what can be opened until nothing more can
        more = {lesson for lesson, needed in before.items() if needed <= open_lessons} - open_lessons
        if not more:
            break
        open_lessons |= more
    dependencies = {f"l{lesson}": [f"l{each}" for each in sorted(needed)] for lesson, needed in before.items()}

    if open_lessons == set(before):
        assert len(graph(**dependencies).lessons) == 8
    else:
        with pytest.raises(ValidationError, match="wait for each other"):
            graph(**dependencies)


def test_a_ladder_may_be_longer_than_the_stack() -> None:
    names = [f"rung {number}" for number in range(3000)]

    assert len(ladder(*names, minimum_sample_probability=0.0).lessons) == 3000


def test_a_dependency_named_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="depends twice on 'walk'"):
        graph(walk=[], run=["walk", "walk"])


def test_a_floor_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"is more than 1 in all; use at most 0\.5"):
        ladder("walk", "run", minimum_sample_probability=0.6)


steps = st.lists(
    st.one_of(
        st.dictionaries(
            st.sampled_from(("walk", "run", "fly")), st.lists(st.sampled_from((WON, WON, LOST)), max_size=9)
        ),
        st.dictionaries(st.sampled_from(("walk", "run", "fly")), st.integers(0, 8), min_size=1),
    ),
    max_size=40,
)


def play(curriculum: Curriculum, happened: list[dict[str, Any]]) -> None:
    for step in happened:
        if any(isinstance(value, int) for value in step.values()):
            curriculum.update_from_evaluation({name: EvaluationStats(won, 8) for name, won in step.items()})
        else:
            curriculum.update_from_training(step)


@settings(max_examples=60)
@given(steps, steps)
def test_a_saved_curriculum_goes_on_with_the_same_bits(before: list[Any], after: list[Any]) -> None:
    whole, resumed = Curriculum(ladder("walk", "run", "fly")), Curriculum(ladder("walk", "run", "fly"))
    play(whole, before)

    resumed.load_state_dict(json.loads(json.dumps(whole.state_dict(), allow_nan=False)))
    play(whole, after)
    play(resumed, after)

    assert resumed.state_dict() == whole.state_dict()
    assert resumed.probabilities() == whole.probabilities()


@settings(max_examples=60)
@given(steps)
def test_states_only_change_along_the_arrows(happened: list[Any]) -> None:
    arrows = {("locked", "unlocked"), ("unlocked", "graduated"), ("graduated", "regressed"), ("regressed", "graduated")}
    curriculum = Curriculum(ladder("walk", "run", "fly"))
    states = dict.fromkeys(curriculum.lessons, "locked")
    play(curriculum, happened)

    for change in curriculum.drain_changes():
        assert (states[change.lesson], change.change) in arrows
        states[change.lesson] = change.change

    assert states == curriculum.states
    assert set(curriculum.probabilities()) == {name for name, state in states.items() if state != "locked"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 7}, "has version 7"),
        ({"lessons": {}}, "Go on with the lessons the run began with"),
        ({"lessons": {"walk": {"state": "asleep"}}}, "has the state 'asleep'"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    curriculum = Curriculum(ladder("walk"))

    with pytest.raises(HookStateError, match=words):
        curriculum.load_state_dict({**curriculum.state_dict(), **change})
