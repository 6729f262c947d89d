"""Seed 001: the audit's uniform signature ``(self, trainer_state: TrainerState)`` and the names of BaseLoss."""

from __future__ import annotations

from hookloop.core import TrainingLoop
from hookloop.hooks import TrainerState
from hookloop.testing import ToyWorkload


class LossLikeHook:
    """Every callback the audit names, in BaseLoss's spelling."""

    def __init__(self):
        self.calls = []

    def on_new_training_run(self, trainer_state: TrainerState) -> None:
        self.calls.append(("new_training_run", trainer_state.epoch))

    def on_rollout_start(self, trainer_state: TrainerState) -> None:
        self.calls.append(("rollout_start", trainer_state.epoch))

    def on_rollout_end(self, trainer_state: TrainerState) -> None:
        self.calls.append(("rollout_end", trainer_state.agent_step))

    def on_mb_end(self, trainer_state: TrainerState) -> None:
        self.calls.append(("mb_end", trainer_state.mb_idx))

    def on_train_phase_end(self, trainer_state: TrainerState) -> None:
        self.calls.append(("train_phase_end", trainer_state.epoch))

    def on_epoch_end(self, trainer_state: TrainerState) -> None:
        assert isinstance(trainer_state, TrainerState)
        self.calls.append(("epoch_end", trainer_state.epoch))


def test_all_callbacks_of_the_audit_run_in_the_order_of_the_losses() -> None:
    hook = LossLikeHook()

    TrainingLoop(ToyWorkload(epochs=1, steps_per_epoch=4, num_envs=4, minibatch_size=8), [hook]).run()

    assert hook.calls == [
        ("new_training_run", 0),
        ("rollout_start", 0),
        ("rollout_end", 16),
        ("mb_end", 0),
        ("mb_end", 1),
        ("train_phase_end", 0),
        ("epoch_end", 1),
    ]


def test_on_training_start_and_on_new_training_run_are_one_event() -> None:
    seen: list[str] = []

    class Old:
        def on_new_training_run(self, trainer_state: TrainerState) -> None:
            seen.append("old")

    class New:
        def on_training_start(self, trainer_state: TrainerState) -> None:
            seen.append("new")

    TrainingLoop(ToyWorkload(epochs=1), [Old(), New()]).run()

    assert seen == ["old", "new"]


def test_the_gate_of_the_losses_can_be_put_on_any_hook() -> None:
    """The audit's missing scheduling: windows and cycles of epochs, counted as BaseLoss counts them."""
    seen: list[int] = []

    class Gated:
        schedule = "from 2 until 9 epochs and cycle 4 epochs on 1,3"

        def on_rollout_start(self, trainer_state: TrainerState) -> None:
            seen.append(trainer_state.epoch)

    TrainingLoop(ToyWorkload(epochs=12), [Gated()]).run()

    assert seen == [2, 4, 6, 8]
