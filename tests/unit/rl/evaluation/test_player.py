from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from hookloop.errors import ConfigError, EvaluationError
from hookloop.evaluation import Wanted
from hookloop.rl import build_trainer, make_envs, make_policy
from hookloop.rl.config import EnvConfig, PolicyConfig, RLConfig, TrainerConfig
from hookloop.rl.envs import SyncEnvs
from hookloop.rl.evaluation import PolicyPlayer
from hookloop.rl.evaluation.loading import load_player
from hookloop.rl.evaluation.player import env_settings
from hookloop.rl.evaluation.playing import Session


class SeededEnv(gymnasium.Env):
    """Its episodes are as long as the seed says; the return is the length. ``release`` lets a hanging one go."""

    def __init__(self, *, hangs_at: int | None = None, release: threading.Event | None = None) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.hangs_at, self.release, self.length, self.steps = hangs_at, release, 0, 0
        self.is_closed = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        # Without a seed, an episode is short: whoever counted those would see it in the lengths.
        self.length, self.steps = (1 if seed is None else length_of(seed)), 0
        return np.zeros(2, np.float32), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.release is not None and self.steps == self.hangs_at:
            self.release.wait(300)
        return np.zeros(2, np.float32), 1.0, self.steps >= self.length, False, {}

    def close(self) -> None:
        self.is_closed = True


def length_of(seed: int) -> int:
    return 1 + seed % 7 * (10 if seed % 2 else 1)


def policy_for(env: gymnasium.Env) -> Any:
    envs = SyncEnvs([env])
    return make_policy(envs.observation, envs.action, hidden=(8,))


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("slots", [1, 3, 4, 10, 16])
def test_exactly_the_episodes_asked_for_are_played_each_with_its_own_seed_whatever_their_lengths(slots: int) -> None:
    policy = policy_for(SeededEnv())
    wanted = Wanted(episodes=10, seed=100)

    played = Session(policy, lambda: SyncEnvs([SeededEnv() for _ in range(slots)]), wanted).play()

    assert [episode.number for episode in played.episodes] == list(range(10))
    assert [episode.length for episode in played.episodes] == [length_of(100 + k) for k in range(10)]
    assert played.failed == 0


def test_a_hanging_environment_is_given_up_and_its_episodes_are_counted_as_failed(release: threading.Event) -> None:
    numbers: list[int] = []
    for max_seconds in (0.3, 3.0, 30.0):  # on a busy machine, the good one needs more time
        envs = [SeededEnv(), SeededEnv(hangs_at=2, release=release)]
        wanted = Wanted(episodes=4, seed=0, max_seconds=max_seconds)  # lengths 1, 11, 3, 31

        played = Session(policy_for(SeededEnv()), lambda envs=envs: SyncEnvs(envs), wanted).play()

        assert not release.is_set()
        assert (played.failed + len(played.episodes), played.why) == (4, f"not ended within {max_seconds:g} seconds")
        numbers = [episode.number for episode in played.episodes]
        if numbers:
            break
    assert numbers == [0]


def test_one_that_is_merely_slow_stops_by_itself_and_closes_its_environments() -> None:
    class Slow(SeededEnv):
        def step(self, action: int) -> Any:
            time.sleep(0.02)
            return super().step(action)

    env = Slow()

    played = Session(policy_for(SeededEnv()), lambda: SyncEnvs([env]), Wanted(40, seed=3, max_seconds=0.2)).play()

    assert played.failed > 0
    assert env.is_closed


@pytest.mark.parametrize("max_seconds", [None, 5.0])
def test_an_environment_that_fails_fails_the_evaluation_and_is_closed(max_seconds: float | None) -> None:
    class Broken(SeededEnv):
        def step(self, action: int) -> Any:
            raise OSError("the simulator is gone")

    env = Broken()

    with pytest.raises(OSError, match="the simulator is gone"):
        Session(policy_for(SeededEnv()), lambda: SyncEnvs([env]), Wanted(2, seed=0, max_seconds=max_seconds)).play()

    assert env.is_closed


CASES = {
    "native": EnvConfig(id="CartPole-v1", num_envs=4),
    "sync": EnvConfig(id="CartPole-v1", num_envs=4, mode="sync"),
    "continuous": EnvConfig(id="Pendulum-v1", num_envs=4),
    "normalised": EnvConfig(id="Pendulum-v1", num_envs=4, normalise_observations=True, normalise_rewards=True),
    "masked": EnvConfig(id="Taxi-v4", num_envs=4),
}


def trainer_for(env: EnvConfig, memory: str = "none") -> Any:
    config = RLConfig(
        env=env,
        policy=PolicyConfig(hidden=(8, 8), memory=memory),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, segment_length=8),
    )
    return build_trainer(config, seed=3)


@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize("memory", ["none", "gru"])
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_environment_and_policy_is_played_and_the_same_seed_gives_the_same_episodes(
    case: str, memory: str, greedy: bool
) -> None:
    trainer = trainer_for(CASES[case], memory)
    wanted = Wanted(episodes=4, seed=7, greedy=greedy)

    once, again = trainer.player().play(None, wanted), trainer.player().play(None, wanted)

    assert len(once.episodes) == 4
    assert once == again


def test_envpool_is_played_and_its_first_episodes_alone_count() -> None:
    pytest.importorskip("envpool")
    trainer = trainer_for(EnvConfig(id="CartPole-v1", num_envs=3, mode="envpool"))
    player = trainer.player()

    few, many = player.play(None, Wanted(3, seed=5)), player.play(None, Wanted(7, seed=5))

    assert many.episodes[:3] == few.episodes
    assert len(many.episodes) == 7


def test_sampled_actions_differ_from_greedy_ones() -> None:
    player = trainer_for(CASES["sync"]).player()

    greedy, sampled = (player.play(None, Wanted(6, seed=1, greedy=choice)) for choice in (True, False))

    assert greedy != sampled


def test_observations_are_scaled_by_the_statistics_of_training_which_stand_still() -> None:
    trainer = trainer_for(CASES["normalised"])
    trainer.train(500)
    before = trainer.envs.envs.statistics_state()
    player = trainer.player()

    played = player.play(None, Wanted(2, seed=1, max_seconds=None, record=1))

    assert str(player.normalisation.statistics) == str(before) == str(trainer.envs.envs.statistics_state())
    # What is recorded is what the environment showed.
    assert played.episodes[0].record is not None
    angles = played.episodes[0].record.arrays["observations"][:, 0]
    assert np.all(np.abs(angles) <= 1.0)


def test_the_policy_stays_in_the_mode_it_was_in_also_if_an_evaluation_fails() -> None:
    trainer = trainer_for(CASES["sync"])
    trainer.policy.train()
    trainer.policy.network.hidden.eval()
    modes = [module.training for module in trainer.policy.modules()]

    player = trainer.player()
    with pytest.raises(EvaluationError, match="cannot play in Pendulum-v1: it was made for"):
        player.play("Pendulum-v1", Wanted(1, seed=0))
    player.play(None, Wanted(1, seed=0))

    assert [module.training for module in trainer.policy.modules()] == modes
    assert not any(module.training for module in player.policy.modules())


def test_a_player_keeps_the_weights_it_was_made_with() -> None:
    trainer = trainer_for(CASES["sync"])
    player = trainer.player()
    before = player.play(None, Wanted(5, seed=1))

    with torch.no_grad():
        for parameter in trainer.policy.parameters():
            parameter.add_(1.0)

    assert player.play(None, Wanted(5, seed=1)) == before


def test_a_policy_that_cannot_be_copied_is_refused_with_the_reason() -> None:
    policy = make_policy(*(lambda envs: (envs.observation, envs.action))(make_envs("CartPole-v1", 1)), hidden=(8,))
    policy.network.kept = (torch.ones(2, requires_grad=True) * 2).sum()

    with pytest.raises(EvaluationError, match="cannot be copied"):
        PolicyPlayer(policy)


def test_what_is_recorded_is_the_episode() -> None:
    player = trainer_for(CASES["masked"]).player()

    played = player.play(None, Wanted(episodes=3, seed=2, greedy=False, record=2))

    records = [episode.record for episode in played.episodes]
    assert [record is not None for record in records] == [True, True, False]
    first, arrays = played.episodes[0], records[0].arrays
    assert len(arrays["observations"]) == first.length + 1
    for name in ("actions", "rewards", "values", "probabilities", "chosen_probabilities"):
        assert len(arrays[name]) == first.length
    assert arrays["rewards"].sum() == first.return_
    chosen = np.take_along_axis(arrays["probabilities"], arrays["actions"][:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, arrays["chosen_probabilities"], rtol=1e-5)
    assert records[0].about["seed"] == 2


@pytest.mark.parametrize(
    ("id", "render", "name"), [("CartPole-v1", "rgb_array", "frames"), ("Taxi-v4", "ansi", "boards")]
)
def test_what_an_environment_draws_is_recorded_when_asked_for(id: str, render: Any, name: str) -> None:
    if render == "rgb_array":
        pytest.importorskip("pygame")
    player = trainer_for(EnvConfig(id=id, num_envs=2)).player()

    episode = player.play(None, Wanted(episodes=2, seed=0, record=1, render=render, greedy=False)).episodes[0]

    assert episode.record is not None
    assert episode.record.arrays[name].dtype == np.uint8
    assert len(episode.record.arrays[name]) == episode.length
    if render == "ansi":
        assert bytes(episode.record.arrays[name][0]).rstrip(b"\0").decode().startswith("+---")


def test_a_simulation_says_what_differs_from_training() -> None:
    base = EnvConfig(id="CartPole-v1", num_envs=4, kwargs={"sutton_barto_reward": True}, normalise_observations=True)

    assert env_settings(base, None) is base
    assert env_settings(base, {"kwargs": {}}).kwargs == {}
    assert env_settings(base, {"num_envs": 2}).kwargs == base.kwargs
    other = env_settings(base, "Acrobot-v1")
    assert (other.id, other.kwargs, other.normalise_observations) == ("Acrobot-v1", {}, True)
    lesson = env_settings(base, SimpleNamespace(id=None, kwargs={"max_steps": 9}))
    assert (lesson.id, lesson.kwargs) == ("CartPole-v1", {"sutton_barto_reward": True, "max_steps": 9})
    with pytest.raises(ConfigError, match="settings that mean nothing"):
        env_settings(base, {"num_env": 3})
    with pytest.raises(ConfigError, match="give the Trainer"):
        env_settings(None, None)


@pytest.mark.parametrize("rewards", [False, True])
@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_a_player_out_of_a_saved_state_plays_as_the_policy_did(memory: str, rewards: bool) -> None:
    env = EnvConfig(id="Pendulum-v1", num_envs=2, normalise_observations=True, normalise_rewards=rewards)
    trainer = trainer_for(env, memory)
    trainer.train(100)
    config = RLConfig(env=env, policy=PolicyConfig(hidden=(8, 8), memory=memory))

    loaded = load_player(config, trainer.state_dict()["workload"])

    wanted = Wanted(episodes=2, seed=4)
    assert loaded.play(None, wanted) == trainer.player().play(None, wanted)


def test_a_saved_state_that_does_not_fit_the_settings_is_refused() -> None:
    saved = trainer_for(CASES["sync"]).state_dict()["workload"]

    for config in (
        RLConfig(env=CASES["sync"], policy=PolicyConfig(hidden=(9,))),
        RLConfig(env=CASES["normalised"], policy=PolicyConfig(hidden=(8, 8))),
    ):
        with pytest.raises(EvaluationError, match="does not fit the settings"):
            load_player(config, saved)
