"""What hooks can ask for, what they can be given, and what is computed only when somebody looks."""

from __future__ import annotations

import pytest

from hookloop.core import HookContext, HookManager, TrainingLoop
from hookloop.errors import HookStateError
from hookloop.testing import Harness, ToyWorkload


def test_a_request_makes_the_serving_hook_due_once_in_the_same_event_if_its_turn_is_to_come() -> None:
    saved: list[int] = []
    harness = Harness()
    harness.hooks.add(
        lambda ctx: saved.append(ctx.state.epoch), name="save", on="epoch_end", stage="checkpoint", serves="checkpoint",
        schedule="every 10 epochs",
    )  # fmt: skip
    harness.hooks.add(lambda ctx: ctx.request_checkpoint(), name="ask", on="epoch_end", schedule="at 3 epochs")

    for _ in range(12):
        harness.epoch()

    assert saved == [3, 10]
    assert harness.state.requests == {}


def test_a_request_from_a_later_hook_is_served_at_the_next_event() -> None:
    evaluated: list[int] = []
    harness = Harness()
    harness.hooks.add(
        lambda ctx: evaluated.append(ctx.state.epoch), name="eval", on="epoch_end", stage="evaluate", schedule="never",
        serves="evaluation",
    )  # fmt: skip
    harness.hooks.add(lambda ctx: ctx.request_evaluation(), name="ask", on="epoch_end", schedule="at 2 epochs")

    for _ in range(5):
        harness.epoch()

    assert evaluated == [3]


def test_a_request_between_events_is_served_too() -> None:
    saved: list[int] = []
    harness = Harness()
    harness.hooks.add(
        lambda ctx: saved.append(ctx.state.epoch), name="save", on="epoch_end", serves="checkpoint", schedule="never"
    )
    harness.epoch()

    harness.context.request_checkpoint()
    harness.epoch()
    harness.epoch()

    assert saved == [2]


def test_returned_metrics_carry_the_hooks_name_and_the_clocks_at_which_they_were_measured() -> None:
    class Norm:
        def on_epoch_end(self) -> dict[str, float]:
            return {"l2": 1.5}

    harness = Harness(Norm())
    harness.advance(env_steps=64)

    harness.epoch()

    (row,) = harness.context.drain_metrics()
    assert row["values"] == {"Norm/l2": 1.5}
    assert (row["hook"], row["event"]) == ("Norm", "epoch_end")
    assert (row["clocks"]["epochs"], row["clocks"]["env_steps"]) == (1, 64)
    assert harness.context.drain_metrics() == []


def test_without_a_reporter_logged_metrics_do_not_pile_up() -> None:
    loop = TrainingLoop(ToyWorkload(50))
    loop.hooks.add(lambda: {"x": 1}, name="chatty", on="step_end")

    loop.run()

    assert loop.state.pending_metrics == []


def test_a_value_is_wanted_only_on_steps_where_a_consumer_is_due() -> None:
    computed: list[int] = []
    seen: list[float] = []
    hooks = HookManager()
    hooks.offer("grad_norm")
    hooks.add(
        lambda grad_norm: seen.append(grad_norm), name="norms", on="minibatch_end", schedule="every 4 minibatches"
    )

    class Norming(ToyWorkload):
        def run_epoch(self, loop: TrainingLoop) -> None:
            for _ in range(10):
                if hooks.wants("grad_norm", minibatches=1):
                    computed.append(loop.clocks.minibatches + 1)
                    loop.context.values["grad_norm"] = float(loop.clocks.minibatches + 1)
                loop.minibatch_end()

    TrainingLoop(Norming(1), hooks).run()

    assert computed == [4, 8]
    assert seen == [4.0, 8.0]


def test_nobody_wants_what_nobody_needs() -> None:
    hooks = HookManager()
    hooks.offer("grad_norm")
    hooks.add(lambda ctx: None, name="other", on="minibatch_end")

    assert not hooks.wants("grad_norm")


def test_a_hook_that_needs_a_value_runs_after_the_hook_that_provides_it() -> None:
    order: list[str] = []

    class Consumer:
        needs = ("score",)

        def on_epoch_end(self, ctx: HookContext) -> None:
            order.append(f"consumes {ctx.value('score')}")

    class Provider:
        provides = ("score",)

        def on_epoch_end(self, ctx: HookContext) -> None:
            ctx.values["score"] = 7
            order.append("provides")

    Harness(Consumer(), Provider()).epoch()

    assert order == ["provides", "consumes 7"]


def test_a_value_that_was_not_computed_is_missed_by_name() -> None:
    class Consumer:
        def on_epoch_end(self, ctx: HookContext) -> None:
            ctx.value("score")

    with pytest.raises(HookStateError, match="'Consumer' reads 'score' at 'epoch_end'"):
        Harness(Consumer()).epoch()


def test_a_workload_declares_events_of_its_own_with_a_counter() -> None:
    hooks = HookManager()
    hooks.event("env_reset", clock="resets")
    seen: list[float] = []

    class Resets:
        schedule = "every 3 resets"

        def on_env_reset(self, resets: int) -> None:
            seen.append(resets)

    hooks.add(Resets())
    ctx = hooks.context

    for _ in range(7):
        ctx.state.clocks.resets += 1
        hooks.fire("env_reset", ctx)

    assert seen == [3, 6]


def test_hooks_added_during_a_run_are_started_and_do_not_catch_up() -> None:
    seen: list[str] = []

    class Late:
        schedule = "every 2 epochs"

        def on_training_start(self, ctx: HookContext) -> None:
            seen.append(f"start at {ctx.state.epoch}")

        def on_epoch_end(self, epoch: int) -> None:
            seen.append(f"epoch {epoch}")

    loop = TrainingLoop(ToyWorkload(7))

    def add_late() -> None:
        loop.hooks.add(Late())

    loop.hooks.add(add_late, on="epoch_end", schedule="at 3 epochs")

    loop.run()

    assert seen == ["start at 3", "epoch 4", "epoch 6"]


def test_a_hook_added_for_a_block_is_gone_after_it_and_was_closed() -> None:
    seen: list[str] = []

    class Temporary:
        def on_epoch_end(self) -> None:
            seen.append("epoch")

        def on_close(self) -> None:
            seen.append("close")

    harness = Harness()
    harness.start()

    with harness.hooks.added(Temporary()):
        harness.epoch()
    harness.epoch()

    assert seen == ["epoch", "close"]
    assert len(harness.hooks) == 0


def test_a_hook_can_be_switched_off_and_on() -> None:
    seen: list[int] = []
    harness = Harness()
    name = harness.hooks.add(lambda epoch: seen.append(epoch), name="h", on="epoch_end")

    harness.epoch()
    harness.hooks.enable(name, False)
    harness.epoch()
    harness.hooks.enable(name)
    harness.epoch()

    assert seen == [1, 3]


def test_a_request_nobody_serves_is_dropped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    harness.hooks.add(lambda ctx: ctx.request_checkpoint(), name="ask", on="epoch_end")

    harness.epoch()

    assert harness.state.requests == {}
    assert "'ask' asked for 'checkpoint', which no hook serves" in caplog.text


def test_a_value_of_the_epoch_before_is_not_mistaken_for_todays() -> None:
    class Provider:
        provides = "score"
        schedule = "every 2 epochs"

        def on_epoch_end(self, ctx: HookContext) -> None:
            ctx.values["score"] = ctx.state.epoch

    seen: list[int | None] = []
    loop = TrainingLoop(ToyWorkload(4), [Provider()])
    loop.hooks.add(lambda ctx: seen.append(ctx.values.get("score")), name="reader", on="epoch_end", needs="score")

    loop.run()

    assert seen == [None, 2, None, 4]


def test_taking_a_provided_value_as_a_parameter_orders_the_hooks() -> None:
    class Provider:
        provides = "score"
        priority = -1

        def on_epoch_end(self, ctx: HookContext) -> None:
            ctx.values["score"] = 5

    seen: list[int] = []
    harness = Harness(Provider())
    harness.hooks.add(lambda score: seen.append(score), name="reader", on="epoch_end")

    harness.epoch()

    assert seen == [5]


def test_a_workload_counts_on_its_own_clock_through_the_loop() -> None:
    hooks = HookManager()
    hooks.event("env_reset", clock="resets")
    seen: list[int] = []
    hooks.add(lambda resets: seen.append(resets), name="r", on="env_reset", schedule="every 2 resets")
    loop = TrainingLoop(ToyWorkload(1), hooks)

    for _ in range(5):
        loop.happened("env_reset", resets=1)

    assert seen == [2, 4]
