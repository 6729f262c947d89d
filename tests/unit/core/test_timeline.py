"""The dry run: what it foresees is what a real run then does, and what it cannot foresee it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.core import (
    At,
    Cycle,
    Every,
    HookContext,
    HookManager,
    Once,
    PeriodicHook,
    Schedule,
    Timeline,
    TrainingLoop,
    Window,
)
from hookloop.errors import UnknownNameError
from hookloop.testing import Harness, ToyWorkload

INF = math.inf
EVENTS_OF_AN_EPOCH = (
    "epoch_start",
    "rollout_start",
    "rollout_end",
    "train_phase_start",
    "train_phase_end",
    "epoch_end",
)
EPOCHS = 12

Plan = Sequence[tuple[str, Schedule]]
"""The hooks of a run: an event and a schedule each."""

Calls = list[tuple[float, str, str]]
"""Epochs, event and hook of each call."""


# What is generated


def leaves(clock: str | None, most: int) -> st.SearchStrategy[Schedule]:
    def every(n: int, start: int, length: int | None) -> Schedule:
        return Every(n, clock, start, INF if length is None else start + length)

    def window(begin: int, length: int | None) -> Schedule:
        return Window(begin, INF if length is None else begin + length, clock)

    ticks = st.integers(0, most)
    lengths = st.none() | st.integers(1, most)
    positions = st.sets(st.integers(1, 4), min_size=1, max_size=3)
    return st.one_of(
        st.builds(every, st.integers(1, max(most // 2, 1)), ticks, lengths),
        st.builds(window, ticks, lengths),
        st.builds(At, st.sets(ticks, min_size=1, max_size=4), st.just(clock)),
        st.builds(Once, ticks, st.just(clock)),
        st.builds(lambda length, active: Cycle(length, active, clock), st.integers(4, 6), positions),
    )


def expressions(*parts: st.SearchStrategy[Schedule]) -> st.SearchStrategy[Schedule]:
    def combine(inner: st.SearchStrategy[Schedule]) -> st.SearchStrategy[Schedule]:
        pairs = st.tuples(inner, inner)
        return pairs.map(lambda p: p[0] & p[1]) | pairs.map(lambda p: p[0] | p[1]) | inner.map(lambda p: ~p)

    return st.recursive(st.one_of(*parts), combine, max_leaves=3)


on_epochs = expressions(leaves("epochs", EPOCHS))
on_many_clocks = expressions(leaves("epochs", EPOCHS), leaves("minibatches", 40), leaves("env_steps", 200))
quickly = settings(max_examples=80, deadline=None)


def plans(events: Sequence[str], schedules: st.SearchStrategy[Schedule]) -> st.SearchStrategy[Plan]:
    return st.lists(st.tuples(st.sampled_from(events), schedules), min_size=1, max_size=3)


# How it is compared


def workload(epochs: int) -> tuple[ToyWorkload, dict[str, float]]:
    """Return a workload whose clocks move by one at each of their events, and how far they move in an epoch."""
    toy = ToyWorkload(epochs, steps_per_epoch=6, num_envs=1, minibatch_size=2)
    return toy, {"env_steps": 6, "minibatches": 3, "optimizer_steps": 3, "episodes": 1, "update_epochs": 1}


def record(hooks: HookManager, plan: Plan) -> list[tuple[str, str, dict[str, float]]]:
    """Add a hook per entry of the plan, and return the list into which they write their calls."""
    calls: list[tuple[str, str, dict[str, float]]] = []
    for number, (event, schedule) in enumerate(plan):
        name = f"hook_{number}"

        def note(ctx: HookContext, name: str = name) -> None:
            calls.append((ctx.event, name, dict(ctx.readings)))

        hooks.add(note, name=name, on=event, schedule=schedule, priority=number % 2)
    return calls


def placed(timeline: Timeline, calls: list[tuple[str, str, dict[str, float]]]) -> tuple[Calls, Calls]:
    """Return the foreseen and the real calls of the hooks that could be placed."""
    unplaced = {standing.hook for standing in timeline.standing}
    foreseen = [(firing.epochs, firing.event, firing.hook) for firing in timeline]
    return foreseen, [(reading["epochs"], event, hook) for event, hook, reading in calls if hook not in unplaced]


def foreseen_and_real(plan: Plan, epochs: int = EPOCHS) -> tuple[Calls, Calls]:
    hooks = HookManager()
    calls = record(hooks, plan)
    toy, per_epoch = workload(epochs)

    timeline = hooks.timeline(epochs, per_epoch)
    TrainingLoop(toy, hooks, watch_signals=False).run()

    return placed(timeline, calls)


# The dry run is the run


@quickly
@given(plans(EVENTS_OF_AN_EPOCH, on_epochs))
def test_it_foresees_the_calls_of_a_run_in_their_order(plan: Plan) -> None:
    foreseen, real = foreseen_and_real(plan)

    assert foreseen == real


@quickly
@given(plans(("epoch_start", "epoch_end"), on_many_clocks))
def test_it_foresees_the_calls_of_a_run_also_when_other_clocks_decide(plan: Plan) -> None:
    foreseen, real = foreseen_and_real(plan)

    assert foreseen == real


@quickly
@given(
    st.sampled_from([("step_end", "env_steps", 6), ("minibatch_end", "minibatches", 3)]),
    expressions(leaves(None, 30)),
)
def test_it_foresees_calls_within_an_epoch_on_their_own_clock(kind: tuple[str, str, int], schedule: Schedule) -> None:
    event, clock, per_epoch = kind
    hooks = HookManager()
    calls = record(hooks, [(event, schedule)])
    toy, rates = workload(EPOCHS)

    timeline = hooks.timeline(EPOCHS, rates)
    TrainingLoop(toy, hooks, watch_signals=False).run()

    if not timeline.standing:
        foreseen = [firing.epochs * per_epoch for firing in timeline]
        assert foreseen == pytest.approx([reading[clock] for _, _, reading in calls])


@quickly
@given(plans(("epoch_start", "epoch_end"), on_many_clocks), st.integers(1, 6), st.integers(1, 6))
def test_in_mid_run_it_foresees_the_rest(plan: Plan, done: int, ahead: int) -> None:
    harness = Harness()
    calls = record(harness.hooks, plan)

    def train(epochs: int) -> None:
        for _ in range(epochs):
            harness.fire("epoch_start")
            harness.advance(epochs=1, minibatches=3, env_steps=20)
            harness.fire("epoch_end")

    train(done)
    calls.clear()
    timeline = harness.hooks.timeline(ahead, {"minibatches": 3, "env_steps": 20})
    train(ahead)

    foreseen, real = placed(timeline, calls)
    assert foreseen == real


@pytest.mark.parametrize(
    ("event", "schedule", "epochs"),
    [
        ("epoch_end", Every(2, "epochs"), [2, 4]),
        ("epoch_start", Every(2, "epochs"), [2, 4]),
        ("epoch_end", Window(0, 3, "epochs"), [1, 2]),
        ("epoch_start", Window(0, 3, "epochs"), [0, 1, 2]),
        ("epoch_end", At(0, "epochs"), [1]),
        ("epoch_end", ~Every(2, "epochs"), [1, 3, 5]),
        ("epoch_end", Every(1, "minibatches"), [1, 2, 3, 4, 5]),
        ("epoch_end", At([4, 5, 6], "minibatches"), [2]),
        ("epoch_end", Window(4, INF, "minibatches"), [2, 3, 4, 5]),
        ("epoch_end", Every(2, "epochs") & Window(4, 12, "minibatches"), [2]),
    ],
    ids=str,
)
def test_a_call_is_foreseen_once_and_at_an_event_that_happens(
    event: str, schedule: Schedule, epochs: list[int]
) -> None:
    foreseen, real = foreseen_and_real([(event, schedule)], epochs=5)

    assert [call[0] for call in real] == epochs
    assert foreseen == real


def test_an_epoch_ends_before_the_next_one_starts() -> None:
    plan = [("epoch_start", Every(2, "epochs")), ("epoch_end", Every(2, "epochs"))]

    foreseen, _ = foreseen_and_real(plan, epochs=3)

    assert foreseen == [(2, "epoch_end", "hook_1"), (2, "epoch_start", "hook_0")]


def test_looking_ahead_changes_nothing() -> None:
    plan = [("epoch_end", Every(3, "epochs") | At(5, "minibatches"))]
    hooks, untouched = HookManager(), HookManager()
    calls, expected = record(hooks, plan), record(untouched, plan)

    for epochs in (1, 5, 50):
        hooks.timeline(epochs, {"minibatches": 3})
    for each in (hooks, untouched):
        TrainingLoop(workload(EPOCHS)[0], each, watch_signals=False).run()

    assert [reading["epochs"] for _, _, reading in calls] == [reading["epochs"] for _, _, reading in expected]


# What it says


class Guarded(PeriodicHook):
    def should_run(self, context: HookContext) -> bool:
        return context.step % 7 == 3

    def run(self, context: HookContext) -> None: ...


def test_every_call_is_given_its_reason() -> None:
    hooks = HookManager()
    hooks.add(lambda: None, name="probe", on="epoch_end", schedule="every 50 epochs from 100")

    (firing,) = hooks.timeline(150)

    assert (firing.epochs, firing.event, firing.hook) == (150, "epoch_end", "probe")
    assert "every 50 epochs from 100" in firing.why
    assert "150" in firing.why


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "each time"),
        ({"schedule": lambda ctx: True}, "predicate decides during the run"),
        ({"schedule": "every 100 env_steps"}, "per_epoch={'env_steps': ...}"),
        ({"schedule": "every 10 minutes"}, "per_epoch={'seconds': ...}"),
    ],
    ids=["always", "predicate", "unknown rate", "time"],
)
def test_a_hook_that_cannot_be_placed_is_listed_with_the_reason(options: dict[str, Any], why: str) -> None:
    hooks = HookManager()
    hooks.add(lambda: None, name="probe", on="epoch_end", **options)

    timeline = hooks.timeline(10)

    assert timeline.firings == ()
    (standing,) = timeline.standing
    assert (standing.hook, standing.event) == ("probe", "epoch_end")
    assert why in standing.why


def test_a_rate_may_be_given_by_any_name_of_its_clock() -> None:
    hooks = HookManager()
    hooks.add(lambda: None, name="probe", on="epoch_end", schedule="every 100 env_steps")

    assert [firing.epochs for firing in hooks.timeline(4, {"agent_steps": 50})] == [2, 4]


def test_a_misspelt_rate_is_told_with_the_nearest_clock() -> None:
    with pytest.raises(UnknownNameError, match=r"no clock 'env_stps'.*Did you mean 'env_steps'\?"):
        HookManager().timeline(4, {"env_stps": 50})


def test_a_hook_that_decides_for_itself_cannot_be_placed() -> None:
    hooks = HookManager()
    hooks.add(Guarded(5), name="probe")

    (standing,) = hooks.timeline(10, {"env_steps": 100}).standing

    assert "should_run" in standing.why


def test_hooks_that_are_switched_off_and_turning_points_of_the_run_are_left_out() -> None:
    class Farewell:
        def on_training_end(self) -> None: ...

    hooks = HookManager()
    hooks.add(Farewell())
    hooks.add(lambda: None, name="off", on="epoch_end", schedule="every 2 epochs", enabled=False)

    timeline = hooks.timeline(10)

    assert timeline.firings == timeline.standing == ()


def test_it_prints_as_a_table_for_people() -> None:
    hooks = HookManager()
    hooks.add(lambda: None, name="save", on="epoch_end", schedule="every 5 epochs")
    hooks.add(lambda: None, name="show_progress", on="epoch_end")

    header, first, second, standing = str(hooks.timeline(10)).splitlines()

    assert header.split() == ["epoch", "event", "hook", "why"]
    assert first.split()[:3] == ["5", "epoch_end", "save"]
    assert second.split()[:3] == ["10", "epoch_end", "save"]
    assert standing.split() == ["epoch_end", "show_progress", "each", "time"]


def test_a_long_run_is_foreseen_without_running_it() -> None:
    hooks = HookManager()
    hooks.add(lambda: None, name="save", on="epoch_end", schedule="every 10000 epochs")

    assert [firing.epochs for firing in hooks.timeline(50_000)] == [10_000, 20_000, 30_000, 40_000, 50_000]
