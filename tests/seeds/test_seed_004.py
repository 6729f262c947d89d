"""Seed 004: callbacks ``on_step_end(trainer)``, a stop signal from a callback, one end in every case."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hookloop.core import TrainingLoop
from hookloop.display import TrainingDisplay
from hookloop.testing import ToyWorkload


class Trainer:
    """The seed's trainer, as far as callbacks look at it; the loop owns the only counter."""

    def __init__(self, callbacks, epochs=3):
        self.loop = TrainingLoop(ToyWorkload(epochs, steps_per_epoch=4, num_envs=1), callbacks)
        self.loop.context.trainer = self
        self.finalized = 0
        self.loop.hooks.add(self._finalize_training, on="training_end")

    @property
    def global_timestep(self) -> int:
        return self.loop.clocks.env_steps

    def _finalize_training(self) -> None:
        self.finalized += 1

    def run_training_loop(self):
        return self.loop.run()


class CheckpointCallback:
    def __init__(self, interval):
        self.interval = interval
        self.saved = []

    def on_step_end(self, trainer):
        if trainer.global_timestep % self.interval == 0:
            self.saved.append(trainer.global_timestep)


def test_step_callbacks_are_given_the_trainer_after_each_step() -> None:
    callback = CheckpointCallback(interval=5)

    Trainer([callback]).run_training_loop()

    assert callback.saved == [5, 10]


def test_a_callback_can_ask_to_stop_and_says_why() -> None:
    class StopAt:
        def on_step_end(self, trainer, ctx):
            if trainer.global_timestep >= 6:
                ctx.request_stop("rating reached")

    trainer = Trainer([StopAt()])

    result = trainer.run_training_loop()

    assert result.outcome == "stopped"
    assert result.stop is not None
    assert (result.stop.by, result.stop.reason, result.stop.env_steps) == ("StopAt", "rating reached", 6)
    assert trainer.global_timestep == 8  # the epoch under way is finished first
    assert trainer.finalized == 1


@pytest.mark.parametrize("error", [RuntimeError("engine died"), KeyboardInterrupt()])
def test_an_error_or_interrupt_in_a_callback_finalises_once_and_is_raised(error: BaseException) -> None:
    class Broken:
        def on_step_end(self, trainer):
            raise error

    trainer = Trainer([Broken()])

    with pytest.raises(type(error)):
        trainer.run_training_loop()

    assert trainer.finalized == 1


def test_pending_progress_updates_are_handed_to_the_display_and_cleared_when_it_has_taken_them() -> None:
    output = io.StringIO()
    display = TrainingDisplay(console=Console(file=output, width=100, height=20), throttle_seconds=3600)

    class UpdateDisplay:
        def on_step_end(self, trainer, ctx):
            pending = ctx.state.pending_progress_updates
            pending["winner"] = f"black at {trainer.global_timestep}"
            is_shown = display.update_progress(
                current_step=trainer.global_timestep, total_steps=12, completed_episodes=0, **pending
            )
            if is_shown:
                pending.clear()
            assert is_shown == (trainer.global_timestep in (1, 12)), "the first and the last, the throttle is an hour"

    trainer = Trainer([UpdateDisplay()])
    with display.get_context_manager():
        trainer.run_training_loop()

    assert trainer.loop.state.pending_progress_updates == {}
    assert "12 of 12 steps" in output.getvalue()
    assert "winner black at 12" in output.getvalue()
