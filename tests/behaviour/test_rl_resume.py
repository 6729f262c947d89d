"""The house rule for reinforcement learning: N + resume N equals 2N, bit for bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from hookloop.rl import PPO, StateDependentExploration, Trainer, TrainerConfig, build_trainer
from hookloop.rl.config import GAUSSIAN, EnvConfig, Exploration, PolicyConfig, PPOConfig, RLConfig
from hookloop.rl.values import Linear

EPOCHS = 6
BY_STATE = StateDependentExploration(resample_steps=5, initial_log_std=-1.0)
VALUES = {"optimizer.learning_rate": Linear(1e-3, 0.0), "losses.ppo.clip": Linear(0.3, 0.1)}


def settings(
    env: str,
    mode: str = "sync",
    *,
    normalise: bool = False,
    memory: str = "none",
    exploration: Exploration = GAUSSIAN,
    **trainer: Any,
) -> RLConfig:
    return RLConfig(
        env=EnvConfig(id=env, num_envs=4, mode=mode, normalise_observations=normalise, normalise_rewards=normalise),
        policy=PolicyConfig(hidden=(16, 16), memory=memory, exploration=exploration),
        losses={"ppo": PPOConfig(entropy_coefficient=0.01, value_clip=0.2)},
        trainer=TrainerConfig(
            horizon=32, num_minibatches=4, update_epochs=2, segment_length=8, values=VALUES, **trainer
        ),
    )


CASES: dict[str, Callable[[], RLConfig]] = {
    "native": lambda: settings("CartPole-v1", "native"),
    "sync": lambda: settings("CartPole-v1"),
    "continuous, normalised": lambda: settings("Pendulum-v1", normalise=True),
    "state-dependent": lambda: settings("Pendulum-v1", exploration=BY_STATE),
    "state-dependent, gru": lambda: settings("Pendulum-v1", memory="gru", exploration=BY_STATE),
    "discrete, normalised": lambda: settings("Acrobot-v1", normalise=True),
    "masked": lambda: settings("Taxi-v4"),
    "gru": lambda: settings("CartPole-v1", memory="gru"),
    "lstm, native": lambda: settings("CartPole-v1", "native", memory="lstm"),
    "prioritised": lambda: settings("CartPole-v1", sampling="prioritised"),
    "sequential": lambda: settings("CartPole-v1", sampling="sequential"),
    "accumulated": lambda: settings("CartPole-v1", accumulate_minibatches=3),
}


def steps_to_train(config: RLConfig) -> int:
    return EPOCHS * config.trainer.horizon * config.env.num_envs - 200  # fillers do not count


def ending(trainer: Trainer) -> dict[str, Any]:
    clocks = {name: value for name, value in trainer.state.clocks.reading().items() if name != "seconds"}
    return {"clocks": clocks, "recent": list(trainer.workload.collector.recent), "losses": trainer.state.loss_stats}


@pytest.mark.parametrize("case", CASES)
def test_training_resumes_bit_for_bit(case: str) -> None:
    config = CASES[case]()
    total = steps_to_train(config)
    saves: dict[int, Any] = {}

    def save(ctx: Any) -> None:
        saves[ctx.state.epoch] = copy.deepcopy(whole.state_dict())

    whole = build_trainer(config, seed=3)
    whole.add_hook(save, name="save", on="epoch_end", stage="checkpoint")
    whole.train(total)
    assert whole.state.epoch > EPOCHS // 2

    for epoch in (1, EPOCHS // 2):
        resumed = build_trainer(config, seed=3)
        resumed.add_hook(lambda ctx: None, name="save", on="epoch_end", stage="checkpoint")
        resumed.load_state_dict(saves[epoch])
        resumed.train(total)

        assert torch.equal(resumed.optimizer.flat, whole.optimizer.flat)
        assert ending(resumed) == ending(whole)


def test_another_seed_trains_another_policy() -> None:
    config = settings("CartPole-v1")
    one, other = build_trainer(config, seed=1), build_trainer(config, seed=2)

    one.train(200)
    other.train(200)

    assert not torch.equal(one.optimizer.flat, other.optimizer.flat)


def test_the_same_seed_trains_the_same_policy_whatever_hooks_watch() -> None:
    config = settings("CartPole-v1")
    plain, watched = build_trainer(config, seed=1), build_trainer(config, seed=1)
    watched.add_hook(lambda ctx: {"draw": ctx.rng.random()}, name="draws", on="step_end")
    watched.add_hook(lambda: 1 / 0, name="fails", on="minibatch_end", on_error="disable")
    watched.add_hook(lambda ctx: None, name="slow", on="epoch_end", background=True)
    for number in range(100):
        watched.add_hook(lambda ctx: None, name=f"idle {number}", on="step_end", schedule="every 1000000 env_steps")

    plain.train(600)
    watched.train(600)

    assert torch.equal(plain.optimizer.flat, watched.optimizer.flat)


def test_two_losses_of_one_name_are_refused() -> None:
    trainer = build_trainer(settings("CartPole-v1"))

    with pytest.raises(ValueError, match="Two losses are named 'ppo'"):
        Trainer(policy=trainer.policy, envs=trainer.envs, losses=[PPO(), PPO()], config=TrainerConfig(horizon=32))
