"""The hooks that show where a run is: what they flush, what they measure, and what happens when they cannot."""

from __future__ import annotations

import errno
import io
import json
from dataclasses import dataclass, field

import pytest
from rich.console import Console

from hookloop import HookManager, TrainingLoop
from hookloop.display import Block, LiveDisplay, RunView
from hookloop.errors import DisplayError, HookStateError
from hookloop.hooks import DisplayHook, ProgressHook
from hookloop.testing import ManualClock, ToyWorkload, assert_pure


class Display(LiveDisplay):
    """A display without a terminal: it remembers views, and draws when it is told to."""

    def __init__(self) -> None:
        super().__init__(Console(file=io.StringIO()))
        self.views: list[RunView] = []
        self.drawn = 0
        self.draws_at_once = True
        self.error: str = ""
        self.is_on = False

    @property
    def is_running(self) -> bool:
        return self.is_on

    def start(self) -> None:
        self.is_on = True

    def stop(self) -> None:
        self.is_on = False

    def publish(self, view: RunView) -> int:
        if self.error:
            raise DisplayError(self.error)
        self.views.append(view)
        if self.draws_at_once:
            self.drawn = len(self.views)
        return len(self.views)

    def has_drawn(self, number: int) -> bool:
        return self.drawn >= number


@dataclass
class Says:
    """Wants something shown after each epoch."""

    words: dict[str, object] = field(default_factory=lambda: {"opponent": "pool-7"})

    def on_epoch_end(self, ctx) -> None:
        ctx.state.pending_progress_updates.update(self.words)


class Broken(io.StringIO):
    """A file on a full disk."""

    is_full = True

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


class SlowEpochs:
    """Lets a second pass in every epoch, most of it in its collection."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def on_rollout_start(self) -> None:
        self._clock.advance(seconds=0.25)

    def on_minibatch_start(self) -> None:
        self._clock.advance(seconds=0.01)


def run(*hooks: object, epochs: int = 3, clock: ManualClock | None = None) -> TrainingLoop:
    clock = clock if clock is not None else ManualClock()
    manager = HookManager(time_ns=clock)
    for hook in hooks:
        manager.add(hook)
    loop = TrainingLoop(ToyWorkload(epochs=epochs), manager, time_ns=clock)
    loop.run()
    return loop


def ticking() -> tuple[ManualClock, object]:
    clock = ManualClock()
    return clock, SlowEpochs(clock)


# What anybody wants shown


def test_pending_updates_are_written_with_the_line_and_then_cleared() -> None:
    output = io.StringIO()
    clock, slow = ticking()

    loop = run(Says(), slow, ProgressHook(0.1, output=output), clock=clock)

    assert all("opponent=pool-7" in line for line in output.getvalue().splitlines())
    assert loop.state.pending_progress_updates == {}


def test_pending_updates_are_kept_when_the_line_cannot_be_written() -> None:
    output = Broken()
    clock, slow = ticking()

    loop = run(Says(), slow, ProgressHook(0.1, output=output), clock=clock)

    assert loop.state.pending_progress_updates == {"opponent": "pool-7"}
    assert loop.state.failures["ProgressHook"].count == 3


def test_pending_updates_accumulate_until_a_flush_succeeds() -> None:
    output, clock = Broken(), ManualClock()

    class Games:
        def on_epoch_end(self, ctx) -> None:
            ctx.state.pending_progress_updates[f"game_{ctx.state.epoch}"] = "won"
            output.is_full = ctx.state.epoch < 3

    loop = run(Games(), SlowEpochs(clock), ProgressHook(0.1, output=output), clock=clock)

    assert "game_1=won game_2=won game_3=won" in output.getvalue()
    assert loop.state.pending_progress_updates == {}


def test_pending_updates_stay_until_they_are_on_the_terminal() -> None:
    display = Display()
    display.draws_at_once = False
    clock, slow = ticking()

    loop = run(Says(), slow, DisplayHook(live=display), clock=clock)

    assert display.views[-1].notes == {"opponent": "pool-7"}
    assert loop.state.pending_progress_updates == {"opponent": "pool-7"}


def test_pending_updates_are_cleared_once_they_are_drawn_and_stay_on_the_panel() -> None:
    display, clock = Display(), ManualClock()

    class SaysOnce:
        schedule = "at 1 epochs"

        def on_epoch_end(self, ctx) -> None:
            ctx.state.pending_progress_updates["opponent"] = "pool-7"

    loop = run(SaysOnce(), SlowEpochs(clock), DisplayHook(live=display), clock=clock)

    assert loop.state.pending_progress_updates == {}
    assert display.views[-1].notes == {"opponent": "pool-7"}


def test_pending_updates_are_kept_when_the_display_raises() -> None:
    display = Display()
    clock, slow = ticking()

    class Breaks:
        stage = "report"

        def on_epoch_end(self) -> None:
            display.error = "the terminal is gone"

    loop = run(Says(), slow, Breaks(), DisplayHook(live=display), clock=clock)

    assert loop.state.pending_progress_updates == {"opponent": "pool-7"}
    assert loop.state.failures["DisplayHook"].count >= 3
    assert not display.is_on  # a hook that was switched off has given the terminal back


def test_what_changed_after_it_was_flushed_is_still_to_be_shown() -> None:
    display, clock = Display(), ManualClock()
    display.draws_at_once = False

    class Counts:
        def on_epoch_end(self, ctx) -> None:
            ctx.state.pending_progress_updates["games"] = 1000 + ctx.state.epoch
            display.drawn = len(display.views)

    loop = run(Counts(), SlowEpochs(clock), DisplayHook(live=display), clock=clock)

    assert loop.state.pending_progress_updates == {"games": 1003}


def test_pending_updates_are_saved_with_the_run_and_refused_if_they_are_not_plain() -> None:
    loop = TrainingLoop(ToyWorkload(epochs=1), [Says()])
    loop.run()
    resumed = TrainingLoop(ToyWorkload(epochs=1), [Says()])
    resumed.load_state_dict(loop.state_dict())
    assert resumed.state.pending_progress_updates == {"opponent": "pool-7"}

    old = loop.state_dict()
    del old["state"]["pending_progress_updates"]  # as a checkpoint from before it has none
    resumed.load_state_dict(old)

    loop.state.pending_progress_updates["bad"] = object()
    with pytest.raises(HookStateError, match=r"state\.pending_progress_updates\.bad holds a object"):
        loop.state_dict()


def test_what_a_background_hook_wants_shown_is_shown() -> None:
    display, clock = Display(), ManualClock()

    class Uploads:
        background = True

        def on_epoch_end(self, ctx) -> None:
            ctx.state.pending_progress_updates["uploaded"] = "yes"

    run(Uploads(), SlowEpochs(clock), DisplayHook(live=display), epochs=5, clock=clock)

    assert display.views[-1].notes == {"uploaded": "yes"}


# What is shown


def test_a_view_has_the_clocks_the_speed_the_time_left_and_the_shares() -> None:
    display = Display()
    clock, slow = ticking()

    run(slow, DisplayHook(total_steps=320, run="toy", live=display), epochs=4, clock=clock)

    view = display.views[-2]
    assert (view.run, view.epoch, view.step, view.total_steps) == ("toy", 4, 128, 320)
    assert view.steps_per_second == pytest.approx(128 / view.elapsed_seconds)
    assert view.eta_seconds == pytest.approx(view.elapsed_seconds * (320 - 128) / 128)
    assert view.hooks["SlowEpochs"] == pytest.approx(1.0)  # it is a hook that lets time pass
    assert sum(view.phases.values()) + view.hooks_share == pytest.approx(1.0)  # and no time is counted twice
    assert display.views[-1].status == "completed"
    assert not display.is_on


def test_the_time_of_phases_is_told_from_that_of_hooks() -> None:
    display, clock = Display(), ManualClock()

    class SlowTraining(ToyWorkload):
        def run_epoch(self, loop):
            with loop.rollout():
                clock.advance(seconds=3)
            with loop.train_phase():
                clock.advance(seconds=1)

    manager = HookManager(time_ns=clock)
    manager.add(DisplayHook(live=display))
    TrainingLoop(SlowTraining(epochs=2), manager, time_ns=clock).run()

    assert display.views[-1].phases == {"collect": pytest.approx(0.75), "train": pytest.approx(0.25)}


def test_views_come_at_most_four_times_per_second_however_short_epochs_are() -> None:
    display, clock = Display(), ManualClock()

    class Short:
        def on_epoch_start(self) -> None:
            clock.advance(seconds=0.01)

    run(Short(), DisplayHook(live=display), epochs=100, clock=clock)

    assert len(display.views) <= 2 + 4  # a second; the first and the last besides


def test_curves_hold_every_epoch_and_not_only_those_that_were_shown() -> None:
    display, clock = Display(), ManualClock()

    class Losing:
        def on_epoch_end(self, ctx) -> None:
            ctx.metrics = {"loss": 1.0 / ctx.state.epoch, "note": "text"}

    run(Losing(), DisplayHook(live=display), epochs=10, clock=clock)

    view = display.views[-1]
    assert view.curves["loss"].latest == 0.1
    assert len(view.curves["loss"].points) == 10
    assert view.notes["note"] == "text"


def test_failures_of_hooks_scores_services_and_blocks_are_in_the_view() -> None:
    display = Display()
    clock, slow = ticking()

    @dataclass
    class Health:
        name: str = "wandb"
        state: str = "behind"
        epochs_behind: int = 312
        last_error: str = ""

    class Service:
        def health(self):
            return [Health()]

    class Fails:
        on_error = "warn"

        def on_epoch_end(self, ctx) -> None:
            ctx.state.eval_scores["greedy"] = 10.0 - ctx.state.epoch
            raise OSError("no route")

    class Serves:
        def on_training_start(self, ctx) -> None:
            ctx.services["trackers"] = Service()

    run(Fails(), Serves(), slow, DisplayHook(live=display, blocks=lambda: [Block("board", ("X",))]), clock=clock)

    view = display.views[-1]
    assert (view.failures[0].hook, view.failures[0].count) == ("Fails", 3)
    assert (view.evaluations[0].score, view.evaluations[0].best) == (7.0, 9.0)
    tracker = view.trackers[0]
    assert (tracker.name, tracker.is_well, tracker.queued, tracker.state) == ("wandb", False, 312, "behind")
    assert view.blocks == (Block("board", ("X",)),)


def test_a_run_that_fails_is_shown_as_failed_and_the_terminal_is_given_back() -> None:
    display = Display()

    def explode() -> None:
        raise RuntimeError("engine died")

    manager = HookManager()
    manager.add(explode, on="epoch_end")
    manager.add(DisplayHook(live=display))
    with pytest.raises(RuntimeError, match="engine died"):
        TrainingLoop(ToyWorkload(epochs=1), manager).run()

    assert display.views[-1].status == "failed"
    assert not display.is_on


@pytest.mark.parametrize("hook", [DisplayHook(), ProgressHook(output=io.StringIO())])
def test_showing_a_run_does_not_change_it(hook: object) -> None:
    assert_pure(hook)


def test_json_lines_are_strict() -> None:
    output = io.StringIO()
    clock, slow = ticking()

    class Diverges:
        def on_epoch_end(self, ctx) -> None:
            ctx.metrics = {"loss": float("nan")}

    run(slow, Diverges(), ProgressHook(0.1, "json", 320, output=output), clock=clock)

    rows = [json.loads(line, parse_constant=pytest.fail) for line in output.getvalue().splitlines()]
    assert [row["loss"] for row in rows] == [None] * 3
    assert all(row["total_steps"] == 320 and row["sps"] > 0 for row in rows)
