"""Reinforcement learning as a user meets it: it learns, composes, and says what is wrong."""

from __future__ import annotations

import gc
import itertools
import os
from typing import Any

import psutil
import pytest
import torch

from hookloop.core import TrainerState
from hookloop.errors import ConfigError
from hookloop.hooks import GoalHook
from hookloop.recipes import find_recipe
from hookloop.rl import (
    PPO,
    Kickstart,
    Loss,
    StateDependentExploration,
    Trainer,
    TrainerConfig,
    build_trainer,
    make_envs,
    make_policy,
)
from hookloop.rl.config import EnvConfig, PolicyConfig, RLConfig
from hookloop.rl.specs import ArraySpec
from hookloop.rl.values import Linear


def trainer_of(*losses: Loss, hooks: Any = (), seed: int = 0, **config: Any) -> Trainer:
    envs = make_envs("CartPole-v1", 4, mode="native")
    policy = make_policy(envs.observation, envs.action, hidden=(16, 16), seed=seed)
    sizes = {"horizon": 16, "num_minibatches": 2, "update_epochs": 2, **config}
    return Trainer(policy=policy, envs=envs, losses=losses, config=TrainerConfig(**sizes), hooks=hooks, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_cartpole_recipe_reaches_475(seed: int) -> None:
    config = find_recipe("cartpole")
    trainer = build_trainer(config, hooks=[GoalHook(475.0)], seed=seed)

    result = trainer.train(config.total_env_steps)

    assert result.outcome == "stopped"
    assert result.mean_return is not None
    assert result.mean_return >= 475


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_pendulum_recipe_swings_up_and_stays(seed: int) -> None:
    config = find_recipe("pendulum")

    result = build_trainer(config, seed=seed).train(config.total_env_steps)

    assert result.mean_return is not None
    assert result.mean_return >= -250  # hanging down returns about -1,200


def test_the_result_is_typed_and_versioned() -> None:
    result = trainer_of(PPO()).train(500)

    assert result.version == 1
    assert result.outcome == "completed"
    assert result.env_steps >= 500
    assert result.episodes > 0
    assert result.optimizer_steps == result.epochs * 4
    assert result.mean_return is not None
    assert result.seconds > 0


def test_training_goes_on_where_it_stopped_when_called_again() -> None:
    trainer = trainer_of(PPO())

    first = trainer.train(200)
    second = trainer.train(400)

    assert second.env_steps >= 400 > first.env_steps
    assert second.epochs > first.epochs


def test_a_stop_from_a_loss_ends_collection_and_what_was_collected_is_trained_on() -> None:
    class Hasty(PPO):
        def on_step_end(self, trainer_state: TrainerState) -> None:
            trainer_state.stop_rollout = True

    trainer = trainer_of(Hasty())

    trainer.train(1)

    assert trainer.experience.steps == 1
    assert trainer.state.clocks.optimizer_steps == 4


def test_all_losses_switched_off_skips_the_steps_and_leaves_the_policy_alone() -> None:
    trainer = trainer_of(PPO(train_schedule="from 2 epochs"))
    before = trainer.optimizer.flat.detach().clone()

    trainer.train(100)
    untouched = torch.equal(before, trainer.optimizer.flat)
    trainer.train(250)

    assert untouched
    assert trainer.state.clocks.minibatches > trainer.state.clocks.optimizer_steps > 0
    assert not torch.equal(before, trainer.optimizer.flat)


def test_losses_are_called_in_order_with_what_they_asked_to_be_stored() -> None:
    calls: list[str] = []

    class Storing(Loss):
        def get_experience_spec(self):
            return {"step_number": ArraySpec((), "float32")}

        def run_rollout(self, step, trainer_state) -> None:
            step.store("step_number", torch.full((4,), float(step.step)))

        def run_train(self, shared_loss_data, trainer_state):
            stored = shared_loss_data.minibatch.columns["step_number"]
            assert set(stored.tolist()) <= set(range(16))
            calls.append(self.name)
            shared_loss_data.values["left"] = stored.mean()
            return shared_loss_data.evaluated.values.mean() * 0.0

    class Reading(Loss):
        def run_train(self, shared_loss_data, trainer_state):
            assert "left" in shared_loss_data.values
            calls.append(self.name)
            return shared_loss_data.evaluated.values.mean() * 0.0

    trainer_of(Storing(name="first"), Reading(name="second"), PPO()).train(1)

    assert calls == ["first", "second"] * 4


def test_a_loss_may_have_an_optimizer_and_state_of_its_own() -> None:
    class Critic(Loss):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))
            self.own = torch.optim.SGD([self.scale], lr=0.1)

        def run_train(self, shared_loss_data, trainer_state):
            return (self.scale - 3.0) ** 2

        def on_mb_end(self) -> None:
            self.own.step()
            self.own.zero_grad()

        def state_dict(self):
            return {"scale": self.scale.detach().clone()}

        def load_state_dict(self, saved) -> None:
            self.scale.data.copy_(saved["scale"])

    critic = Critic()
    trainer = trainer_of(critic, PPO())
    trainer.train(200)
    restored = Critic()
    second = trainer_of(restored, PPO())

    second.load_state_dict(trainer.state_dict())

    assert critic.scale.item() > 1.5
    assert restored.scale.item() == critic.scale.item()


def test_a_teacher_pulls_the_policy_towards_itself_only_in_its_epochs() -> None:
    envs = make_envs("CartPole-v1", 4, mode="native")
    teacher = make_policy(envs.observation, envs.action, hidden=(16, 16), seed=9)
    with torch.no_grad():
        for name, parameter in teacher.named_parameters():
            if "bias" in name:
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    loss = Kickstart(teacher, train_schedule="until 30 epochs")
    distances: list[float | None] = []
    trainer = trainer_of(loss, optimizer={"learning_rate": 3e-3})
    trainer.add_hook(
        lambda ctx: distances.append(ctx.state.loss_stats.get("kickstart/divergence")), name="d", on="epoch_end"
    )

    trainer.train(40 * 64)

    taught = [distance for distance in distances[:30] if distance is not None]
    assert len(taught) == 30
    assert taught[-1] < 0.25 * taught[0]
    assert distances[30:] == [None] * len(distances[30:])


@pytest.mark.parametrize(("resample_steps", "draws"), [(4, [0, 4, 8]), (None, [0])])
def test_state_dependent_noise_is_drawn_anew_in_each_rollout_and_after_its_steps(
    resample_steps: int | None, draws: list[int]
) -> None:
    horizon = 10
    config = RLConfig(
        env=EnvConfig(id="Pendulum-v1", num_envs=2),
        policy=PolicyConfig(hidden=(8,), exploration=StateDependentExploration(resample_steps=resample_steps)),
        trainer=TrainerConfig(horizon=horizon, num_minibatches=2),
    )
    trainer = build_trainer(config)
    collector = trainer.workload.collector
    held: list[torch.Tensor] = []
    trainer.add_hook(lambda: held.append(collector.state_dict()["noise"]["matrices"]), name="see", on="step_end")

    trainer.train(3 * horizon * 2)

    drawn = [k for k, (before, now) in enumerate(itertools.pairwise(held), 1) if not torch.equal(before, now)]
    assert [0, *drawn] == [rollout * horizon + step for rollout in range(3) for step in draws]


def test_state_dependent_exploration_of_choices_is_refused_before_training() -> None:
    config = RLConfig(
        env=EnvConfig(id="CartPole-v1"), policy=PolicyConfig(exploration=StateDependentExploration(resample_steps=4))
    )

    with pytest.raises(ConfigError, match=r"takes DiscreteActions\(n=2\); set policy.exploration.kind=gaussian"):
        build_trainer(config)


def test_scheduled_values_are_written_by_path_and_reach_their_end() -> None:
    seen: list[tuple[float, float]] = []
    ppo = PPO(clip=0.3)
    trainer = trainer_of(
        ppo, values={"optimizer.learning_rate": Linear(1e-3, 0.0), "losses.ppo.clip": Linear(0.3, 0.1)}
    )
    trainer.add_hook(
        lambda ctx: seen.append((ctx.optimizer.learning_rate, ppo.clip)), name="see", on="train_phase_start"
    )

    trainer.train(1000)

    assert seen[0] == (1e-3, 0.3)
    assert all(later < earlier for (earlier, _), (later, _) in itertools.pairwise(seen))
    assert seen[-1][1] < 0.12


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("optimizer.learning_rat", "optimizer has no number 'learning_rat'.*Did you mean 'learning_rate'"),
        ("losses.ppoo.clip", "nothing at 'losses.ppoo.clip'.*Did you mean 'losses.ppo'"),
    ],
)
def test_a_value_for_nothing_is_refused_with_the_nearest_path(path: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        trainer_of(PPO(), values={path: Linear(1.0, 0.0)})


def test_sizes_that_do_not_fit_are_refused_before_anything_is_built() -> None:
    with pytest.raises(ConfigError, match=r"64 segments.*7 minibatches.*nearest number that fits is 8"):
        trainer_of(PPO(), num_minibatches=7)


def test_a_trainer_without_losses_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"at least one loss, for example losses=\[PPO\(\)\]"):
        trainer_of()


def test_memory_stays_flat_over_500_epochs() -> None:
    trainer = trainer_of(PPO(), horizon=8)
    trainer.train(100 * 32)
    gc.collect()
    process = psutil.Process(os.getpid())
    before = process.memory_info().rss

    trainer.train(600 * 32)
    gc.collect()

    assert trainer.state.epoch >= 500
    assert process.memory_info().rss - before < 8 * 2**20
    assert trainer.state.pending_metrics == []


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_gradients_written_by_hand_train_the_same_policy_as_autograd(env: str) -> None:
    class ByAutograd(PPO):
        def run_train(self, shared_loss_data, trainer_state):
            return super().run_train(shared_loss_data, trainer_state)

    def train(loss: PPO) -> Trainer:
        envs = make_envs(env, 4, mode="sync")
        policy = make_policy(envs.observation, envs.action, hidden=(16, 16), seed=0)
        trainer = Trainer(policy=policy, envs=envs, losses=[loss], config=TrainerConfig(horizon=32), seed=0)
        trainer.train(600)
        return trainer

    by_hand = train(PPO(name="ppo", entropy_coefficient=0.01, value_clip=0.2))
    by_autograd = train(ByAutograd(name="ppo", entropy_coefficient=0.01, value_clip=0.2))

    assert by_hand.policy.can_backpropagate
    torch.testing.assert_close(by_hand.optimizer.flat, by_autograd.optimizer.flat, rtol=1e-4, atol=1e-5)
    assert by_hand.state.loss_stats == pytest.approx(by_autograd.state.loss_stats, rel=1e-3, abs=1e-5)
