"""The house rule: N + resume N equals 2N, for hooks, schedules, failures and requests."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from hookloop.checkpoints import CheckpointManager
from hookloop.core import HookContext, HookManager, PeriodicHook, TrainerState, TrainingLoop
from hookloop.errors import HookStateError
from hookloop.hooks import CheckpointHook, LoggingHook, TimeLimitHook
from hookloop.testing import Harness, ToyWorkload, assert_pure, assert_resumable


class Best:
    """Remembers the best loss by naming what it keeps."""

    saved = ("best",)

    def __init__(self) -> None:
        self.best = float(10**9)

    def on_epoch_end(self, metrics: dict[str, float]) -> dict[str, float]:
        self.best = min(self.best, metrics["loss"])
        return {"best": self.best}


class Explicit:
    """Counts with a state_dict of its own."""

    def __init__(self) -> None:
        self._count = 0

    def state_dict(self) -> dict[str, int]:
        return {"count": self._count}

    def load_state_dict(self, saved: dict[str, int]) -> None:
        self._count = saved["count"]

    def on_step_end(self) -> dict[str, int]:
        self._count += 1
        return {"count": self._count}


class Implicit(PeriodicHook):
    """Keeps what it learns in plain attributes and says nothing about it."""

    def __init__(self) -> None:
        super().__init__(frequency=7)
        self.history: list[float] = []

    def run(self, context: HookContext) -> dict[str, float]:
        self.history.append(context.rng.random())
        return {"draw": self.history[-1], "length": len(self.history)}


class Forgetful:
    """Keeps its count where nobody can save it."""

    def __init__(self) -> None:
        self._count = 0

    def on_epoch_end(self) -> dict[str, int]:
        self._count += 1
        return {"count": self._count}


@pytest.mark.parametrize(
    "hook",
    [Best(), Explicit(), Implicit(), LoggingHook(frequency=3), TimeLimitHook(1e6)],
    ids=lambda h: type(h).__name__,
)
def test_a_hook_resumes_exactly(hook: object) -> None:
    assert_resumable(hook)


@pytest.mark.parametrize(
    "hook",
    [Best(), Explicit(), Implicit(), LoggingHook(frequency=3), TimeLimitHook(1e6)],
    ids=lambda h: type(h).__name__,
)
def test_a_hook_leaves_training_alone(hook: object) -> None:
    assert_pure(hook)


@pytest.mark.parametrize(
    "schedule",
    ["every 3 epochs", "every 5 epochs from 4", "cycle 4 epochs on 2,3", "once at 6 epochs", "not every 2 epochs"],
)
def test_a_schedule_neither_repeats_nor_drops_a_firing_across_a_resume(schedule: str) -> None:
    assert_resumable(Best(), schedule=schedule)


def test_the_proof_of_resuming_catches_a_hook_that_forgets() -> None:
    with pytest.raises(AssertionError, match="Forgetful does not resume exactly"):
        assert_resumable(Forgetful())


def test_the_proof_of_purity_catches_a_hook_that_draws_from_the_global_stream() -> None:
    import random

    class Drawing:
        def on_epoch_end(self) -> None:
            random.random()

    with pytest.raises(AssertionError, match="Drawing draws from the global random stream of random"):
        assert_pure(Drawing())


def test_the_proof_of_purity_catches_a_hook_that_turns_the_clocks() -> None:
    class Turning:
        def on_epoch_end(self, ctx: HookContext) -> None:
            ctx.state.clocks.env_steps += 1

    with pytest.raises(AssertionError, match="clocks differ"):
        assert_pure(Turning())


def test_a_thousand_idle_hooks_give_the_same_bits_as_none() -> None:
    without, with_many = TrainingLoop(ToyWorkload(5)), TrainingLoop(ToyWorkload(5))
    for number in range(1000):
        with_many.hooks.add(Best(), name=f"idle {number}", schedule="every 1000 epochs")

    without.run()
    with_many.run()

    assert with_many.workload.state_dict() == without.workload.state_dict()


def test_adding_a_hook_does_not_change_anothers_random_stream() -> None:
    def draws(*extra: object) -> list[float]:
        hook = Implicit()
        loop = TrainingLoop(ToyWorkload(4), [*extra, hook], state=TrainerState(seed=3))
        loop.run()
        return hook.history

    class Other(Implicit):
        pass

    assert draws() == draws(Other())
    assert len(set(draws())) == len(draws())


def test_loading_is_strict_about_names_and_lists_all_differences() -> None:
    saved = Harness(Best(), Explicit()).hooks.state_dict()
    harness = Harness(Best(), Implicit(), Forgetful())

    with pytest.raises(HookStateError) as caught:
        harness.hooks.load_state_dict(saved)

    message = str(caught.value)
    assert "the save does not hold 'Implicit', 'Forgetful'" in message
    assert "no hook is named 'Explicit'" in message
    assert "strict=False" in message


def test_loading_leniently_restores_what_fits_and_lets_new_hooks_count_from_now() -> None:
    first = Harness(Best())
    for loss in (3.0, 2.0):
        first.epoch(metrics={"loss": loss})
    best, late = Best(), Implicit()
    second = Harness(best, late)
    second.state.load_state_dict(first.state.state_dict())
    second.advance(env_steps=100)

    missing = second.hooks.load_state_dict(first.hooks.state_dict(), strict=False)
    second.step(1)

    assert missing == ["Implicit"]
    assert best.best == 2.0
    assert late.history == []  # 98 was passed before it joined


def test_state_that_cannot_be_saved_is_refused_by_name() -> None:
    class Live:
        def state_dict(self) -> dict[str, object]:
            return {"file": open}

        def on_epoch_end(self) -> None: ...

    with pytest.raises(HookStateError, match=r"hook 'Live'\.file holds a builtin_function_or_method"):
        Harness(Live()).hooks.state_dict()


def test_infinity_is_refused_in_saved_state_since_json_has_no_word_for_it() -> None:
    hook = Best()
    harness = Harness(hook)
    hook.best = float("inf")

    with pytest.raises(HookStateError, match="best is inf"):
        harness.hooks.state_dict()


def test_a_changed_setting_is_not_undone_by_a_resume() -> None:
    class Tuned:
        def __init__(self, patience: int) -> None:
            self.patience = patience
            self.wait = 0

        def on_epoch_end(self) -> None:
            self.wait += 1

    first = Harness(Tuned(patience=3))
    first.epoch()
    hook = Tuned(patience=10)
    second = Harness(hook)

    second.hooks.load_state_dict(first.hooks.state_dict())

    assert (hook.patience, hook.wait) == (10, 1)


def test_failures_in_a_row_are_counted_across_a_resume() -> None:
    class Broken:
        def on_epoch_end(self) -> None:
            raise OSError("down")

    first = Harness(Broken(), on_error="disable")
    first.epoch()
    first.epoch()
    second = Harness(Broken(), on_error="disable")
    second.state.load_state_dict(first.state.state_dict())
    second.hooks.load_state_dict(first.hooks.state_dict())

    second.epoch()

    assert second.state.failures["Broken"].is_disabled
    assert second.state.failures["Broken"].count == 3


def test_a_checkpoint_holds_the_memory_of_hooks_that_run_after_it() -> None:
    """A publisher fires after the checkpoint hook; a resume from that checkpoint must not make it fire again."""
    published: list[int] = []
    saves: list[str] = []

    def build(epochs: int) -> TrainingLoop:
        loop = TrainingLoop(ToyWorkload(epochs))
        loop.hooks.add(
            lambda ctx: published.append(ctx.state.epoch), name="publish", on="epoch_end", stage="publish",
            schedule="every 2 epochs",
        )  # fmt: skip
        loop.hooks.add(
            lambda: saves.append(json.dumps(loop.state_dict())), name="save", on="epoch_end", stage="checkpoint"
        )
        return loop

    build(4).run()
    resumed = build(8)
    resumed.load_state_dict(json.loads(saves[-1]))
    resumed.run()

    assert published == [2, 4, 6, 8]


def test_the_state_round_trips_through_json_and_refuses_what_it_does_not_know() -> None:
    state = TrainerState(run_id="a", seed=5)
    state.clocks.env_steps = 12
    state.eval_scores = {"arena": {"mean": -3.5}}
    context = HookContext(state=state)
    context.request_stop("enough")
    context.log({"x": 1.0})

    restored = TrainerState()
    restored.load_state_dict(json.loads(json.dumps(state.state_dict())))

    assert restored.state_dict() == state.state_dict()
    with pytest.raises(HookStateError, match=r"'epohc'.*Did you mean 'update_epoch'|'epohc'"):
        restored.load_state_dict({**state.state_dict(), "epohc": 1})
    with pytest.raises(HookStateError, match="version 99"):
        restored.load_state_dict({**state.state_dict(), "version": 99})


def test_a_request_that_nobody_has_served_yet_survives_a_resume() -> None:
    served: list[int] = []

    def serving(harness: Harness) -> None:
        harness.hooks.add(
            lambda ctx: served.append(ctx.state.epoch), name="saver", on="epoch_end", schedule="every 100 epochs",
            serves="checkpoint",
        )  # fmt: skip

    first, second = Harness(), Harness()
    serving(first)
    serving(second)
    first.epoch()
    first.context.request_checkpoint()

    second.state.load_state_dict(first.state.state_dict())
    second.hooks.load_state_dict(first.hooks.state_dict())
    second.epoch()
    second.epoch()

    assert served == [2]


def test_hook_managers_do_not_share_a_hook() -> None:
    hook = Best()
    HookManagerHolder = HookManager()
    HookManagerHolder.add(hook)

    with pytest.raises(ValueError, match="registered with another run"):
        HookManager().add(hook)


def test_a_hook_is_free_again_after_its_run_is_closed() -> None:
    hook = Best()
    TrainingLoop(ToyWorkload(1), [hook]).run()

    TrainingLoop(ToyWorkload(1), [hook]).run()

    assert hook.best < 10**9


def test_a_hooks_random_stream_goes_on_within_one_call() -> None:
    drawn: list[float] = []
    harness = Harness()
    harness.hooks.add(lambda ctx: drawn.extend([ctx.rng.random(), ctx.rng.random()]), name="h", on="epoch_end")

    harness.epoch()
    harness.epoch()

    assert len(set(drawn)) == 4


def test_a_schedule_moved_to_another_clock_counts_from_the_resume_on() -> None:
    first = Harness(Best(), schedule="every 3 epochs")
    for _ in range(4):
        first.advance(env_steps=32)
        first.epoch(metrics={"loss": 1.0})
    second = Harness(Best(), schedule="every 100 env_steps")
    second.state.load_state_dict(first.state.state_dict())
    second.hooks.load_state_dict(first.hooks.state_dict())

    for _ in range(4):
        second.advance(env_steps=32)
        second.epoch(metrics={"loss": 1.0})

    rows = second.context.drain_metrics()
    assert [row["clocks"]["env_steps"] for row in rows if row["clocks"]["epochs"] > 4] == [224]


def test_an_attribute_that_can_no_longer_be_saved_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    hook = Best()
    hook.saved = ()
    harness = Harness(hook)
    hook.best = float("nan")

    harness.hooks.state_dict()

    assert "'best' cannot be saved and is lost on a resume" in caplog.text


def test_a_run_that_a_signal_ended_goes_on_from_its_checkpoint_with_the_same_bits(tmp_path: Path) -> None:
    """The state is loaded while the loop runs, at ``restore``; there, too, an interrupt ends the attempt alone."""

    class Interrupt:
        schedule = "at 3 epochs"

        def on_epoch_end(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    def train(*, resume: bool) -> tuple[ToyWorkload, str]:
        workload = ToyWorkload(epochs=8)
        hooks = [CheckpointHook(CheckpointManager(tmp_path), 5, resume=resume), Interrupt()]
        return workload, TrainingLoop(workload, hooks).run().outcome

    whole = ToyWorkload(epochs=8)
    TrainingLoop(whole).run()

    _, first = train(resume=False)
    resumed, second = train(resume=True)

    assert (first, second) == ("interrupted", "completed")
    assert resumed.state_dict() == whole.state_dict()
