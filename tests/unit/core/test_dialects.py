"""One registration for every way of writing a hook."""

from __future__ import annotations

from typing import Any

import pytest

from hookloop.core import BUILT_IN_EVENTS, HookContext, HookManager, TrainerHook, TrainerState
from hookloop.testing import Harness


def test_parameters_are_found_by_name_in_any_order() -> None:
    seen: list[Any] = []

    class Many:
        def on_epoch_end(self, metrics, epoch, trainer_state, ctx, env_steps, policy):
            seen.append((metrics, epoch, trainer_state, ctx, env_steps, policy))

    harness = Harness(Many())
    harness.advance(env_steps=5)

    harness.epoch(metrics={"loss": 1}, model="net")

    assert seen == [({"loss": 1}, 1, harness.state, harness.context, 5, "net")]


def test_optional_parameters_are_filled_where_known_and_left_alone_where_not() -> None:
    seen: list[Any] = []

    def look(ctx, epoch=None, *, metrics=None, verbose=True, **rest):
        seen.append((epoch, metrics, verbose, rest))

    harness = Harness()
    harness.hooks.add(look, on="epoch_end")

    harness.epoch(metrics={"a": 1})

    assert seen == [(1, {"a": 1}, True, {})]


def test_functions_lambdas_callables_and_bound_methods_are_hooks() -> None:
    calls: list[str] = []

    class Callable:
        def __call__(self, ctx):
            calls.append("callable")

    class Other:
        def method(self, ctx):
            calls.append("method")

    def on_epoch_end(ctx):
        calls.append("by its name")

    harness = Harness()
    harness.hooks.add(lambda: calls.append("lambda"), name="l", on="epoch_end")
    harness.hooks.add(Callable(), on="epoch_end")
    harness.hooks.add(Other().method, on="on_epoch_end")
    harness.hooks.add(on_epoch_end)

    harness.epoch()

    assert calls == ["lambda", "callable", "method", "by its name"]


@pytest.mark.parametrize(
    ("alias", "event"), [(alias, event.name) for event in BUILT_IN_EVENTS for alias in event.aliases]
)
def test_every_alias_is_accepted(alias: str, event: str) -> None:
    seen: list[str] = []
    hook = type("Aliased", (), {f"on_{alias}": lambda self, ctx: seen.append(ctx.event)})()
    harness = Harness(hook)

    harness.fire(event)
    harness.fire(alias)

    assert seen == [event, event]


def test_only_overridden_methods_of_a_trainer_hook_are_subscribed() -> None:
    class One(TrainerHook):
        def on_epoch_end(self, ctx):
            return super().on_epoch_end(ctx)

    hooks = HookManager()
    hooks.add(One())

    assert list(hooks.entry("One").slots) == ["epoch_end"]


def test_methods_given_to_an_instance_count_as_well() -> None:
    class Empty:
        pass

    seen: list[int] = []
    hook = Empty()
    hook.on_epoch_end = lambda epoch: seen.append(epoch)

    Harness(hook).epoch()

    assert seen == [1]


def test_an_event_fired_inside_a_hook_leaves_the_outer_event_as_it_was() -> None:
    seen: list[tuple[str, str, int]] = []

    class Outer:
        def on_epoch_end(self, ctx: HookContext) -> None:
            harness.fire("step_end")
            seen.append((ctx.event, ctx.hook, ctx.step))

    class Inner:
        def on_step_end(self, ctx: HookContext) -> None:
            seen.append((ctx.event, ctx.hook, ctx.step))

    harness = Harness(Outer(), Inner())
    harness.advance(env_steps=9)

    harness.epoch()

    assert seen == [("step_end", "Inner", 9), ("epoch_end", "Outer", 1)]


def test_every_field_of_the_state_that_the_seeds_name_is_there() -> None:
    state = TrainerState()

    named = (
        "agent_step epoch update_epoch mb_idx training_env_id stop_rollout stop_update_epoch rollout_stats loss_stats "
    )
    named += "eval_scores gradient_stats curriculum latest_checkpoint_uri latest_wandb_uri latest_saved_epoch"
    assert [name for name in named.split() if not hasattr(state, name)] == []


def test_a_schedule_per_event_keeps_a_due_point_per_event() -> None:
    seen: list[tuple[str, int]] = []

    class Two:
        schedule = {"on_epoch_end": "every 2 epochs", "step_end": 3}  # noqa: RUF012  # a declaration, never changed

        def on_epoch_end(self, epoch):
            seen.append(("epoch", epoch))

        def on_step_end(self, step):
            seen.append(("step", step))

        def on_training_end(self):
            seen.append(("end", 0))

    harness = Harness(Two())
    for _ in range(4):
        harness.step()
        harness.epoch()
    harness.end()

    assert seen == [("epoch", 2), ("step", 3), ("epoch", 4), ("end", 0)]


def test_scheduled_and_unscheduled_hooks_of_one_event_keep_their_order() -> None:
    order: list[str] = []
    harness = Harness()
    for name, schedule in (("a", None), ("b", "every 2 epochs"), ("c", None), ("d", "every 3 epochs")):
        harness.hooks.add(lambda name=name: order.append(name), name=name, on="epoch_end", schedule=schedule)

    for _ in range(6):
        harness.epoch()

    assert order == ["a", "c", "a", "b", "c", "a", "c", "d", "a", "b", "c", "a", "c", "a", "b", "c", "d"]


def test_timing_is_sampled_after_the_first_thousand_firings_and_scaled_up() -> None:
    harness = Harness()
    harness.hooks.add(lambda: harness.clock.advance(0.001), name="steady", on="step_end")

    for _ in range(5000):
        harness.step()

    (cost,) = harness.hooks.costs()
    assert cost.calls == 5000
    assert 1024 < cost.timed_calls < 2000
    assert cost.total_ns == pytest.approx(5_000_000_000, rel=1e-6)
