from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from hookloop.core import HookContext
from hookloop.errors import ConfigError, StatsError
from hookloop.testing import ManualClock
from hookloop.worker import LocalWeights, NoWeightsError, Rollout, RolloutWorker, WorkerConfig
from tests.scripted_source import ScriptedSource, lessons, worker_config


class Waiting:
    """A stopwatch that moves when somebody sleeps, and things that happen meanwhile."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.slept: list[float] = []
        self.then: dict[float, Callable[[], None]] = {}

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)
        for moment in [each for each in self.then if each <= self.clock() / 1e9]:
            self.then.pop(moment)()


def receiving(weights: LocalWeights, waiting: Waiting | None = None, **changes: Any) -> RolloutWorker:
    waiting = waiting or Waiting()
    status = changes.pop("status", None)
    config = worker_config(weights="receive", **changes)
    return RolloutWorker(
        config, weights=weights, status=status, watch_signals=False, time_ns=waiting.clock, sleep=waiting.sleep
    )


def source_of(worker: RolloutWorker) -> ScriptedSource:
    assert isinstance(worker.source, ScriptedSource)
    return worker.source


# Weights


def test_a_worker_waits_for_its_first_weights_and_does_nothing_before() -> None:
    weights, waiting = LocalWeights(), Waiting()
    worker = receiving(weights, waiting, poll_seconds=0.5)
    waiting.then[3.0] = lambda: weights.serve(4, {})

    worker.run(1)

    assert waiting.slept == [0.5] * 6
    assert source_of(worker).versions == [4]


def test_a_worker_that_gets_no_weights_at_all_gives_up_and_says_what_to_do() -> None:
    worker = receiving(LocalWeights(), first_weights_wait_seconds=2.0)

    with pytest.raises(NoWeightsError, match=r"within 2 seconds, and a worker never acts without\. Start"):
        worker.run(1)
    assert source_of(worker).generated == []


def test_without_a_wait_a_worker_runs_ahead_with_the_weights_it_has() -> None:
    weights, waiting = LocalWeights(), Waiting()
    weights.serve(1, {})
    worker = receiving(weights, waiting)

    result = worker.run(3)

    assert waiting.slept == []
    assert (result.run.weight_updates, result.run.steps_without_news) == (1, 2)


def test_a_step_waits_for_newer_weights_no_longer_than_it_may() -> None:
    weights, waiting = LocalWeights(), Waiting()
    weights.serve(1, {})
    worker = receiving(weights, waiting, max_weight_transfer_wait_seconds=1.0, poll_seconds=0.25)
    waiting.then[0.5] = lambda: weights.serve(2, {})

    result = worker.run(3)

    assert source_of(worker).versions == [1, 2]
    assert sum(waiting.slept) == 0.5 + 1.0  # the second step's weights came, the third's did not
    assert result.run.steps_without_news == 1


def test_policy_updated_fires_with_the_version_before_the_step_that_uses_it() -> None:
    weights = LocalWeights()
    weights.serve(7, {})
    worker = receiving(weights)
    events: list[tuple[str, int]] = []
    for event in ("policy_updated", "rollout_start", "step_end"):
        worker.add_hook(lambda ctx: events.append((ctx.event, ctx.state.clocks.policy_version)), name=event, on=event)

    worker.run(1)

    assert events == [("policy_updated", 7), ("rollout_start", 7), ("step_end", 7)]


def test_a_schedule_can_be_counted_in_versions_of_the_weights() -> None:
    weights = LocalWeights()
    weights.serve(1, {})
    worker = receiving(weights)
    due: list[int] = []
    worker.add_hook(lambda ctx: weights.serve(ctx.step + 1, {}), name="trainer", on="policy_updated")
    worker.add_hook(
        lambda ctx: due.append(ctx.state.clocks.policy_version), name="due", on="step_end",
        schedule="every 4 policy_version",
    )  # fmt: skip

    worker.run(9)

    assert due == [4, 8]


def test_a_worker_without_a_place_to_receive_from_says_so_before_it_runs() -> None:
    with pytest.raises(ConfigError, match="nowhere to receive weights from"):
        RolloutWorker(worker_config(weights="receive")).run(1)
    with pytest.raises(ConfigError, match="never receives any"):
        RolloutWorker(worker_config(), weights=LocalWeights())


# The run it works for


def status(state: str, train_steps: int = 0) -> Any:
    return SimpleNamespace(
        state=state, is_over=state not in ("running", "interrupted"), train_steps=train_steps, attempt=1
    )


@pytest.mark.parametrize("state", ["completed", "failed", "stopped"])
def test_a_worker_stops_when_its_run_is_over_even_while_it_waits_for_weights(state: str) -> None:
    waiting = Waiting()
    states = {"now": "running"}
    worker = receiving(LocalWeights(), waiting, status=lambda: status(states["now"]))
    waiting.then[5.0] = lambda: states.update(now=state)

    result = worker.run()

    assert result.outcome == "stopped"
    assert result.loop.stop is not None
    assert result.loop.stop.reason == f"the run has ended: {state}"
    assert source_of(worker).generated == []


def test_a_run_that_was_interrupted_is_waited_for_and_one_that_nobody_knows_yet_too() -> None:
    answers = iter([None, status("running", 5), status("interrupted", 6)])
    worker = RolloutWorker(worker_config(status_seconds=0), status=lambda: next(answers), watch_signals=False)
    seen: list[int] = []
    worker.add_hook(lambda ctx: seen.append(ctx.metadata["train_steps"]), name="seen", on="step_end")

    assert worker.run(3).outcome == "completed"
    assert seen == [0, 5, 6]


def test_the_status_is_looked_at_no_more_often_than_asked_for() -> None:
    clock, looks = ManualClock(), []
    worker = RolloutWorker(
        worker_config(status_seconds=2.0), status=lambda: looks.append(clock()), watch_signals=False, time_ns=clock
    )
    worker.add_hook(lambda: clock.advance(0.5), name="time", on="step_end")

    worker.run(10)

    assert [look / 1e9 for look in looks] == [0.0, 2.0, 4.0]


def test_a_status_that_cannot_be_read_for_a_while_leaves_what_was_known_and_for_good_ends_the_worker() -> None:
    failing = {"left": 5}

    def read() -> Any:
        if failing["left"]:
            failing["left"] -= 1
            raise StatsError("database is locked")
        return status("running", 3)

    config = worker_config(status_seconds=0)
    assert RolloutWorker(config, status=read, watch_signals=False).run(8).outcome == "completed"
    failing["left"] = 100
    with pytest.raises(StatsError, match="locked"):
        RolloutWorker(config, status=read, watch_signals=False).run(20)


# What it generates


def test_rollouts_are_delivered_with_the_step_and_the_time_and_hooks_find_them_in_the_batch() -> None:
    delivered: list[list[Rollout]] = []
    batches: list[Any] = []
    worker = RolloutWorker(worker_config(), deliver=delivered.append, wall_time=lambda: 1234.5, watch_signals=False)
    worker.add_hook(lambda ctx: batches.append(ctx.batch), name="batches", on="step_end")

    worker.run(2)

    assert batches == delivered
    assert [[(each.worker_step, each.created_seconds) for each in batch] for batch in delivered] == [
        [(1, 1234.5)] * 2,
        [(2, 1234.5)] * 2,
    ]


def test_workers_of_one_run_generate_different_rollouts_and_each_the_same_again() -> None:
    def seeds(**changes: Any) -> list[int]:
        worker = RolloutWorker(worker_config(**changes), watch_signals=False)
        worker.run(5)
        return [seed for _, _, seed in source_of(worker).generated]

    assert seeds(worker=0) == seeds(worker=0)
    assert len({*seeds(worker=0), *seeds(worker=1), *seeds(seed=1)}) == 15


def test_lessons_are_drawn_by_their_probabilities_and_changes_are_told() -> None:
    changes: list[tuple[str, str]] = []
    config = worker_config(rewards={"a": 1.0}, curriculum=lessons("a", "b", micro_eval_frequency=0, eval_frequency=0))
    worker = RolloutWorker(config, watch_signals=False)

    def note(ctx: HookContext) -> None:
        changes.append((ctx.metadata["lesson_change"].lesson, ctx.metadata["lesson_change"].change))

    worker.add_hook(note, name="note", on="lesson_changed")
    worker.run(200)

    drawn = [lesson for lesson, _, _ in source_of(worker).generated]
    assert 70 < drawn.count("a") < 130
    assert changes[:2] == [("a", "unlocked"), ("b", "unlocked")]
    selected = [lesson for lesson, change in changes if change == "selected"]
    assert selected == [lesson for lesson, before in zip(drawn, [None, *drawn], strict=False) if lesson != before]


def test_a_killed_worker_goes_on_with_the_same_rollouts_and_counts_its_attempt_apart() -> None:
    def make() -> tuple[RolloutWorker, list[Rollout]]:
        delivered: list[Rollout] = []
        config = worker_config(curriculum=lessons("a", "b"), noise=1.0)
        return RolloutWorker(config, deliver=delivered.extend, wall_time=lambda: 0.0, watch_signals=False), delivered

    whole, expected = make()
    whole.run(60)
    first, before = make()
    first.run(25)
    second, after = make()
    second.load_state_dict(first.state_dict())
    result = second.run(60)

    told = [(each.lesson, each.reward, each.worker_step) for each in before + after]
    assert told == [(each.lesson, each.reward, each.worker_step) for each in expected]
    assert (result.run.steps, result.attempt.steps) == (60, 35)
    assert second.state.attempt == 2
    assert second.curriculum is not None
    assert whole.curriculum is not None
    assert second.curriculum.state_dict() == whole.curriculum.state_dict()


def test_counts_of_the_run_and_of_the_attempt_have_names_of_their_own() -> None:
    worker = RolloutWorker(worker_config(), watch_signals=False)
    worker.run(3)
    other = RolloutWorker(worker_config(), watch_signals=False)
    other.load_state_dict(worker.state_dict())

    other.run(5)

    metrics = other.loop.context.metrics
    assert (metrics["worker/steps"], metrics["attempt/steps"]) == (5.0, 2.0)
    assert (metrics["worker/rollouts"], metrics["attempt/rollouts"]) == (10.0, 4.0)


def test_closing_a_worker_releases_its_source() -> None:
    worker = RolloutWorker(worker_config())

    worker.close()

    assert source_of(worker).is_closed


# Settings


def test_a_mapping_stands_for_episodes_of_gymnasium_and_what_it_cannot_do_is_refused() -> None:
    config = WorkerConfig.model_validate({"source": {"env": {"id": "CartPole-v1"}}})
    assert type(config.source).__name__ == "GymnasiumSourceConfig"
    assert config.model_dump()["source"]["env"]["id"] == "CartPole-v1"

    with pytest.raises(ValidationError, match="cannot scale as training does"):
        WorkerConfig.model_validate({"source": {"env": {"id": "CartPole-v1", "normalise_observations": True}}})
    with pytest.raises(ValidationError, match="stepz"):
        WorkerConfig.model_validate({"source": {"env": {"id": "CartPole-v1"}}, "stepz": 3})
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        RolloutWorker(worker_config()).run(0)
