"""Stable-Baselines3 as a contender of benchmarks/ppo.py, on its own vector environment or on a native one."""

from __future__ import annotations

from typing import Any

import numpy as np
from _ppo_envs import Array, EpisodeReturns, VectorEnvs, make_envs
from _ppo_work import RECENT_EPISODES, Outcome, Pace, Work
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv


def train(work: Work, pace: Pace, *, on_dummy_vec_env: bool) -> Outcome:
    """Train to the end of the work, or until its target return is reached."""
    if on_dummy_vec_env:
        envs = make_vec_env(work.env_id, n_envs=work.num_envs, seed=work.seed)
    else:
        envs = NativeVecEnv(make_envs(work))
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=work.horizon,
        batch_size=work.minibatch_rows,
        n_epochs=work.epochs,
        learning_rate=_schedule(work, work.learning_rate, anneals=work.anneals_lr),
        clip_range=_schedule(work, work.clip, anneals=work.anneals_clip),
        gamma=work.gamma,
        gae_lambda=work.gae_lambda,
        ent_coef=work.entropy_coef,
        vf_coef=work.value_coef,
        max_grad_norm=work.max_grad_norm,
        use_sde=work.uses_gsde,
        sde_sample_freq=4 if work.uses_gsde else -1,
        seed=work.seed,
        device="cpu",
    )
    pacing = PacingCallback(work, pace)
    model.learn(work.total_env_steps, callback=pacing)
    greedy_return = None
    if work.greedy_episodes:
        greedy_return = float(evaluate_policy(model, envs, work.greedy_episodes, deterministic=True)[0])
    return Outcome(model.num_timesteps, pacing.mean_return, pacing.episodes, greedy_return)


class PacingCallback(BaseCallback):
    """Takes turns between updates, counts episodes and stops at the target return."""

    def __init__(self, work: Work, pace: Pace) -> None:
        super().__init__()
        self._work = work
        self._pace = pace
        self._has_reached_target = False
        self.episodes = 0

    def _on_rollout_start(self) -> None:
        self._pace(self.num_timesteps)
        target = self._work.target_return
        if target is not None and len(self.model.ep_info_buffer) >= RECENT_EPISODES:
            self._has_reached_target = self.mean_return >= target

    def _on_step(self) -> bool:
        self.episodes += int(np.count_nonzero(self.locals["dones"]))
        return not self._has_reached_target

    def _on_training_end(self) -> None:
        self._pace(self.num_timesteps)

    @property
    def mean_return(self) -> float:
        returns = [episode["r"] for episode in self.model.ep_info_buffer]
        return float(np.mean(returns)) if returns else 0.0


class NativeVecEnv(VecEnv):
    """The least that Stable-Baselines3 needs to train on a batched environment: no loop over the environments."""

    def __init__(self, envs: VectorEnvs) -> None:
        self._envs = envs
        self._returns = EpisodeReturns(envs.num_envs)
        self._lengths = np.zeros(envs.num_envs, dtype=np.int64)
        self._actions: Array = np.zeros(0)
        super().__init__(envs.num_envs, envs.observation_space, envs.action_space)

    def reset(self) -> Array:
        return self._envs.reset()

    def step_async(self, actions: Array) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        step = self._envs.step(self._actions)
        self._returns.add(step)
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row, env in enumerate(step.ended.tolist()):
            infos[env] = {
                "terminal_observation": step.final_obs[row],
                "TimeLimit.truncated": bool(step.truncated[env] and not step.terminated[env]),
                "episode": {
                    "r": self._returns.recent[row - step.ended.size],
                    "l": int(self._lengths[env]),
                },
            }
        self._lengths[step.ended] = 0
        return step.obs, step.rewards, step.terminated | step.truncated, infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs  # the one attribute that is asked for is render_mode

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def _schedule(work: Work, value: float, *, anneals: bool) -> Any:
    def annealed(progress_left: float) -> float:
        return value * work.progress_left(round((1 - progress_left) * work.total_env_steps))

    return annealed if anneals else value
