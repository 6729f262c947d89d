"""Several learners of reinforcement learning: one policy, environments of their own, shared numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookloop.core import HookManager
from hookloop.curriculum import CurriculumConfig
from hookloop.errors import ConfigError
from hookloop.rl import Trainer
from hookloop.rl.build import build_trainer
from hookloop.rl.config import EnvConfig, PolicyConfig, PPOConfig, RLConfig, TrainerConfig
from hookloop.rl.envs.running import RunningStatistics
from hookloop.rl.sharing import scales_of, share_of
from hookloop.testing import FakeRanks


def config(**changes: Any) -> RLConfig:
    settings: dict[str, Any] = {
        "env": EnvConfig(id="CartPole-v1", num_envs=4, **changes.pop("env", {})),
        "policy": PolicyConfig(hidden=(8,)),
        "losses": {"ppo": PPOConfig(**changes.pop("ppo", {}))},
        "trainer": TrainerConfig(horizon=16, num_minibatches=2, update_epochs=3, **changes.pop("trainer", {})),
    }
    return RLConfig(**settings, **changes)


def trained(ranks: FakeRanks, settings: RLConfig, env_steps: int = 200) -> Trainer:
    trainer = build_trainer(settings, hooks=HookManager(ranks=ranks), seed=3)
    trainer.train(env_steps)
    return trainer


def weights(trainer: Trainer) -> list[float]:
    return trainer.optimizer.flat.tolist()


def test_learners_have_one_policy_one_set_of_clocks_and_one_list_of_episodes() -> None:
    def act(ranks: FakeRanks) -> Any:
        trainer = trained(ranks, config())
        clocks = {name: value for name, value in trainer.state.clocks.reading().items() if name != "seconds"}
        told = trainer.state.loss_stats, trainer.state.rollout_stats, list(trainer.workload.collector.recent)
        return weights(trainer), clocks, told, trainer.envs.num_envs, trainer.experience["obs"].tolist()

    first, second = FakeRanks.run(2, act)

    assert first[:4] == second[:4]
    assert first[3] == 2  # half of the environments each
    assert first[1]["episodes"] == len(first[2][2])
    assert first[4] != second[4]  # but not the same experience


def test_a_target_for_the_divergence_ends_the_epoch_of_all_learners() -> None:
    def act(ranks: FakeRanks) -> tuple[list[float], float]:
        trainer = trained(ranks, config(ppo={"target_kl": 1e-9}))
        return weights(trainer), trainer.state.clocks.update_epochs

    (one, passes), (other, _) = FakeRanks.run(2, act)

    assert one == other
    assert passes < 3 * 4


def test_learners_scale_observations_and_rewards_alike() -> None:
    def act(ranks: FakeRanks) -> Any:
        trainer = trained(ranks, config(env={"normalise_observations": True, "normalise_rewards": True}))
        scales = scales_of(trainer.envs)
        return weights(trainer), [(s.count, s.mean.tolist(), s.variance.tolist()) for s in scales]

    first, second = FakeRanks.run(2, act)

    assert first == second
    assert len(first[1]) == 2
    assert first[1][1][0] > 200  # what all have seen


@given(st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=5), min_size=1, max_size=6))
def test_what_statistics_have_seen_since_gives_them_again_when_it_is_merged(batches: list[list[float]]) -> None:
    statistics = RunningStatistics()
    statistics.update(np.array(batches[0]))
    before = statistics.state_dict()
    for batch in batches[1:]:
        statistics.update(np.array(batch))

    again = RunningStatistics()
    again.load_state_dict(before)
    again.merge(statistics.since(before))

    assert again.count == statistics.count
    np.testing.assert_allclose(again.mean, statistics.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again.variance, statistics.variance, rtol=1e-7, atol=1e-7)


def test_environments_that_cannot_be_shared_evenly_are_refused() -> None:
    assert share_of(8, 4) == 2
    with pytest.raises(ConfigError, match="nearest number that can is 6"):
        share_of(7, 3)


def test_a_curriculum_is_for_one_learner() -> None:
    lessons = CurriculumConfig.model_validate({"lessons": {"one": {}}, "slots": 2})

    with pytest.raises(ConfigError, match="A curriculum chooses by what one learner has played"):
        FakeRanks.run(2, lambda ranks: trained(ranks, config(curriculum=lessons)))


def test_the_events_see_the_mean_gradients() -> None:
    def act(ranks: FakeRanks) -> list[torch.Tensor]:
        seen: list[torch.Tensor] = []
        hooks = HookManager(ranks=ranks)
        hooks.add(lambda ctx: seen.append(ctx.optimizer.gradients.clone()), name="look", on="gradients", ranks="all")
        trainer = build_trainer(config(), hooks=hooks, seed=3)
        trainer.train(1)
        return seen

    first, second = FakeRanks.run(2, act)

    assert len(first) == 6
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
