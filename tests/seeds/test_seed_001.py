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


def test_the_life_cycle_of_a_loss_on_the_real_trainer() -> None:
    """on_new_training_run → per epoch: on_rollout_start → rollout* → (train → on_mb_end)* → on_train_phase_end."""
    import hookloop.rl as rl

    class Recorded(rl.PPO):
        def __init__(self):
            super().__init__(name="recorded")
            self.calls = []

        def get_experience_spec(self):
            self.calls.append("get_experience_spec")
            return {}

        def attach_replay_buffer(self, experience):
            super().attach_replay_buffer(experience)
            self.calls.append("attach_replay_buffer")

        def on_new_training_run(self, trainer_state: TrainerState) -> None:
            self.calls.append("on_new_training_run")

        def on_rollout_start(self, trainer_state: TrainerState) -> None:
            self.calls.append("on_rollout_start")

        def run_rollout(self, step, trainer_state: TrainerState) -> None:
            self.calls.append("run_rollout")

        def run_train(self, shared_loss_data, trainer_state: TrainerState):
            self.calls.append("run_train")
            return super().run_train(shared_loss_data, trainer_state)

        def on_mb_end(self, trainer_state: TrainerState) -> None:
            self.calls.append("on_mb_end")

        def on_train_phase_end(self, trainer_state: TrainerState) -> None:
            self.calls.append("on_train_phase_end")

    loss = Recorded()
    envs = rl.make_envs("CartPole-v1", num_envs=2)
    policy = rl.make_policy(envs.observation, envs.action, hidden=(8, 8), seed=0)
    config = rl.TrainerConfig(horizon=3, num_minibatches=2, update_epochs=1)

    rl.Trainer(policy=policy, envs=envs, losses=[loss], config=config).train(total_env_steps=1)

    assert loss.calls == [
        "get_experience_spec",
        "attach_replay_buffer",
        "on_new_training_run",
        "on_rollout_start",
        *["run_rollout"] * 3,
        *["run_train", "on_mb_end"] * 2,
        "on_train_phase_end",
    ]


def test_a_gated_loss_trains_and_collects_in_its_own_epochs() -> None:
    import torch

    import hookloop.rl as rl

    class Gated(rl.Loss):
        trained_at: list[int] = []  # noqa: RUF012  # shared on purpose: the test reads it
        collected_at: list[int] = []  # noqa: RUF012

        def run_rollout(self, step, trainer_state: TrainerState) -> None:
            self.collected_at.append(trainer_state.epoch)

        def run_train(self, shared_loss_data, trainer_state: TrainerState):
            self.trained_at.append(trainer_state.epoch)
            return shared_loss_data.evaluated.values.mean() * torch.zeros(())

    loss = Gated(
        rollout_schedule=rl.epoch_gate(begin_at_epoch=1, end_at_epoch=4),
        train_schedule=rl.epoch_gate(0, 8, cycle_length=3, active_in_cycle=(2,)),
    )
    envs = rl.make_envs("CartPole-v1", num_envs=2)
    policy = rl.make_policy(envs.observation, envs.action, hidden=(8, 8), seed=0)
    config = rl.TrainerConfig(horizon=4, num_minibatches=1, update_epochs=1)
    trainer = rl.Trainer(policy=policy, envs=envs, losses=[loss, rl.PPO()], config=config)

    while trainer.state.epoch < 10:
        trainer.train(total_env_steps=trainer.state.agent_step + 1)

    assert sorted(set(loss.collected_at)) == [1, 2, 3]
    assert loss.trained_at == [1, 4, 7]
