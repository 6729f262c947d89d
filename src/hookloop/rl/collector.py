"""Collection: the policy acts, the environments answer, everything is written in place."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from hookloop.core import TrainingLoop
from hookloop.rl.envs import Envs, Episode, Move, WrappedEnvs
from hookloop.rl.experience import OBSERVATIONS, Experience, ExperienceSpec
from hookloop.rl.losses.base import Loss, RolloutStep
from hookloop.rl.policies import Policy
from hookloop.rl.resting import RestingMemory, leaves

Plain = Any

EPISODES_IN_MEAN = 100


class Collector:
    """Fills the experience of one epoch and keeps the statistics of finished episodes.

    Args:
        envs: The environments to act in.
        policy: What acts.
        experience: Where transitions go.
        losses: Those that store something of their own are asked at each step.
        generator: The random stream of the actions.
        segment_length: Steps after which a recurrent policy's memory is kept, for training.
    """

    columns: ClassVar[ExperienceSpec] = {}
    """What it stores of each step besides what every trainer needs."""

    def __init__(
        self,
        envs: Envs,
        policy: Policy,
        experience: Experience,
        losses: Sequence[Loss],
        *,
        generator: torch.Generator,
        segment_length: int = 1,
    ) -> None:
        self.envs = envs
        self.policy = policy
        self.experience = experience
        self.generator = generator
        self.recent: deque[tuple[float, int]] = deque(maxlen=EPISODES_IN_MEAN)
        self._storing = [loss for loss in losses if _stores(loss)]
        self._segment_length = segment_length
        self._state = policy.initial_state(envs.num_envs) if policy.is_recurrent else None
        self._resting = RestingMemory()
        self._noise = policy.held_noise(envs.num_envs)
        self._segment_states: list[Any] = []
        self._starts = np.empty(envs.num_envs, dtype=bool)

    @property
    def has_fillers(self) -> bool:
        """Whether some of the rows are no transitions, and nothing is learned from them."""
        return self.envs.has_fillers

    def collect(self, loop: TrainingLoop) -> None:
        """Fill the experience, telling the loop of each step; leave the episodes that finished in the state."""
        experience, envs = self.experience, self.envs
        experience.begin()
        self._segment_states.clear()
        if self._noise is not None:
            self._noise.begin()
        finished: list[Episode] = []
        with loop.rollout():
            for step in range(experience.horizon):
                actions = self._act(step, loop)
                envs.step(actions)
                self._store(step)
                experience.steps = step + 1
                if envs.finished:
                    # A return that is not finite would make every mean with it, and what is saved, the same.
                    ended = [episode for episode in envs.finished if math.isfinite(episode.return_)]
                    finished.extend(ended)
                    self.recent.extend((episode.return_, episode.length) for episode in ended)
                num_steps = int(np.count_nonzero(envs.valid)) if envs.has_fillers else envs.num_envs
                loop.step(env_steps=num_steps, episodes=len(envs.finished))
                if loop.state.stop_rollout:
                    break
            loop.state.rollout_stats = dict(_episode_stats(finished))

    def take_over(self, moves: Sequence[Move]) -> None:
        """Act, from the next step on, in the episodes that slots of lessons have moved to."""
        if isinstance(self.envs, WrappedEnvs):
            for move in moves:
                self.envs.show_again(move.rows)
        if self._state is not None and moves:
            memory = [leaf.clone() for leaf in leaves(self._state)]
            self._resting.change(memory, moves)
            rest = iter(memory)
            self._state = _map_state(lambda _tensor: next(rest), self._state)

    def last_values(self) -> Tensor:
        """Return the values of the observations the next step would act on."""
        return self.policy.value(self._observation(), state=self._live_state())

    def segment_states(self, indices: Tensor) -> Any:
        """Return a recurrent policy's memory at the start of the segments with these indices."""
        states = _stack_states(self._segment_states)
        return _map_state(lambda tensor: tensor.index_select(0, indices), states)

    def state_dict(self) -> dict[str, Plain]:
        """Return all that makes collection go on with the same bits."""
        return {
            "envs": self.envs.state_dict(),
            "generator": self.generator.get_state().clone(),
            "recent": [[return_, length] for return_, length in self.recent],
            "memory": [] if self._state is None else [tensor.clone() for tensor in leaves(self._state)],
            "resting": self._resting.state_dict(),
            "noise": {} if self._noise is None else self._noise.state_dict(),
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.envs.load_state_dict(saved["envs"])
        self.generator.set_state(saved["generator"])
        self.recent = deque(((return_, int(length)) for return_, length in saved["recent"]), maxlen=EPISODES_IN_MEAN)
        if self._state is not None:
            memory = iter(saved["memory"])
            self._state = _map_state(lambda _tensor: next(memory).clone(), self._state)
            self._resting.load_state_dict(saved["resting"])
        if self._noise is not None:
            self._noise.load_state_dict(saved["noise"])

    def _act(self, step: int, loop: TrainingLoop) -> np.ndarray[Any, Any]:
        experience = self.experience
        arrays = experience.arrays
        self._observe(step)
        masks = None if self.envs.action_masks is None else experience.rows["masks"][step]
        if self.policy.is_recurrent:
            arrays["starts"][step] = self._episode_starts()
            if step % self._segment_length == 0:
                self._segment_states.append(_map_state(torch.clone, self._live_state()))
        obs = experience.observation_at(step)
        state, noise = self._live_state(), self._noise
        acted = self.policy.act(obs, mask=masks, state=state, generator=self.generator, noise=noise)
        self._state = acted.state
        actions = acted.actions.numpy()
        arrays["actions"][step] = actions
        arrays["log_probs"][step] = acted.log_probs.numpy()
        arrays["values"][step] = acted.values.numpy()
        for loss in self._storing:
            loss.rollout(RolloutStep(step, obs, masks, experience), loop.state)
        return actions

    def _observe(self, step: int) -> None:
        """Store what the policy acts on."""
        arrays, envs = self.experience.arrays, self.envs
        if isinstance(envs.obs, dict):
            for name, values in envs.obs.items():
                arrays[f"{OBSERVATIONS}/{name}"][step] = values
        else:
            arrays[OBSERVATIONS][step] = envs.obs
        if envs.action_masks is not None:
            arrays["masks"][step] = envs.action_masks

    def _store(self, step: int) -> None:
        arrays, envs = self.experience.arrays, self.envs
        arrays["rewards"][step] = envs.rewards
        arrays["terminated"][step] = envs.terminated
        arrays["truncated"][step] = envs.truncated
        if envs.has_fillers:
            arrays["valid"][step] = envs.valid
        if envs.truncated.any():
            self._bootstrap(step)

    def _bootstrap(self, step: int) -> None:
        """Value the true last observation of episodes that were cut off: they have a future, only not here."""
        cut_off = torch.from_numpy(np.flatnonzero(self.envs.truncated))
        obs = _rows_of(self.envs.final_obs, cut_off)
        state = None if self._state is None else _map_state(lambda tensor: tensor.index_select(0, cut_off), self._state)
        self.experience.rows["bootstraps"][step][cut_off] = self.policy.value(obs, state=state)

    def _observation(self) -> Tensor | dict[str, Tensor]:
        obs = self.envs.obs
        if isinstance(obs, dict):
            return {name: torch.from_numpy(values) for name, values in obs.items()}
        return torch.from_numpy(obs)

    def _episode_starts(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return where the coming step is the first of an episode: the environments know, also after a resume."""
        return np.equal(self.envs.episode_lengths, 0, out=self._starts)

    def _live_state(self) -> Any:
        """Return the policy's memory, emptied where a new episode begins."""
        if self._state is None:
            return None
        # Filled, not multiplied: a memory that is not finite ends with its episode.
        starts = torch.from_numpy(self._episode_starts())
        return _map_state(lambda tensor: tensor.masked_fill(_beside(starts, tensor), 0.0), self._state)


def _stores(loss: Loss) -> bool:
    return type(loss).run_rollout is not Loss.run_rollout or type(loss).rollout is not Loss.rollout


def _episode_stats(episodes: list[Episode]) -> dict[str, list[float]]:
    """Return returns, lengths, and the numbers that environments told when their episodes ended, by name."""
    told: dict[str, list[float]] = {}
    for episode in episodes:
        for name, value in episode.infos.items():
            told.setdefault(name, []).append(value)
    returns = [episode.return_ for episode in episodes]
    return {**told, "return": returns, "length": [float(episode.length) for episode in episodes]}


def _rows_of(obs: Any, indices: Tensor) -> Tensor | dict[str, Tensor]:
    if isinstance(obs, dict):
        return {name: torch.from_numpy(values).index_select(0, indices) for name, values in obs.items()}
    return torch.from_numpy(obs).index_select(0, indices)


def _beside(flags: Tensor, tensor: Tensor) -> Tensor:
    """Return one flag per row in a shape that goes with a tensor's."""
    return flags.view(-1, *[1] * (tensor.dim() - 1))


def _map_state(act: Any, state: Any) -> Any:
    return act(state) if isinstance(state, Tensor) else tuple(_map_state(act, part) for part in state)


def _stack_states(states: list[Any]) -> Any:
    """Join the memories of all segment starts, environment by environment within each start."""
    if isinstance(states[0], Tensor):
        return torch.cat(states, dim=0)
    return tuple(_stack_states([state[k] for state in states]) for k in range(len(states[0])))
