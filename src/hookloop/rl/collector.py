"""Collection: the policy acts, the environments answer, everything is written in place."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from hookloop.core import Ranks, SingleProcess, TrainerState
from hookloop.rl.envs import Envs, Episode, Move, WrappedEnvs
from hookloop.rl.experience import OBSERVATIONS, Experience, ExperienceSpec
from hookloop.rl.losses.base import Loss, RolloutStep
from hookloop.rl.policies import Policy
from hookloop.rl.resting import RestingMemory, leaves
from hookloop.rl.sharing import SharedRollout

Plain = Any

EPISODES_IN_MEAN = 100


class RolloutLoop(Protocol):
    """What collection asks of a loop."""

    @property
    def state(self) -> TrainerState:
        """Where a wish to end the rollout is found, and where its statistics go."""
        ...

    def rollout(self) -> AbstractContextManager[None]:
        """Surround collection."""
        ...

    def step(self, env_steps: int = 1, episodes: int = 0) -> None:
        """Count one vector step, and the episodes that ended with it."""
        ...


class Collector:
    """Fills the experience of one epoch and keeps the statistics of finished episodes.

    Args:
        envs: The environments to act in.
        policy: What acts.
        experience: Where transitions go.
        losses: Those that store something of their own are asked at each step.
        generator: The random stream of the actions.
        segment_length: Steps after which a recurrent policy's memory is kept, for training.
        ranks: The learners of the run, each of which has environments of its own.
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
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks: Ranks = SingleProcess() if ranks is None else ranks
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

    @property
    def exactness(self) -> str:
        """What a resume promises: ``bit-exact``, or ``learner-exact`` if the environments cannot save themselves."""
        return self.envs.exactness

    @property
    def inexact_because(self) -> str:
        """Why a resume is not bit-exact; empty if it is."""
        return self.envs.inexact_because

    def collect(self, loop: RolloutLoop) -> None:
        """Fill the experience, telling the loop of each step; leave the episodes that finished in the state."""
        experience, envs = self.experience, self.envs
        experience.begin()
        self._segment_states.clear()
        if self._noise is not None:
            self._noise.begin()
        finished: list[Episode] = []
        others = None if self.ranks.world_size == 1 else SharedRollout(self.ranks, envs, loop.state.clocks)
        # With fillers nobody knows how many steps of the others are real until all have met.
        per_step = envs.num_envs * (1 if envs.has_fillers else self.ranks.world_size)
        with loop.rollout():
            for step in range(experience.horizon):
                actions = self._act(step, loop)
                envs.step(actions)
                self._store(step)
                experience.steps = step + 1
                if envs.finished:
                    ended = with_finite_returns(envs.finished)
                    finished.extend(self._note(ended) if others is None else ended)
                num_steps = int(np.count_nonzero(envs.valid)) if envs.has_fillers else per_step
                loop.step(env_steps=num_steps, episodes=len(envs.finished))
                if loop.state.stop_rollout:
                    break
            if others is not None:
                finished = self._note(others.meet(experience, finished))
            loop.state.rollout_stats = dict(episode_stats(finished))

    def take_over(self, moves: Sequence[Move]) -> None:
        """Act, from the next step on, in the episodes that slots of lessons have moved to."""
        if isinstance(self.envs, WrappedEnvs):
            for move in moves:
                self.envs.show_again(move.rows)
        if self._state is not None and moves:
            memory = [leaf.clone() for leaf in leaves(self._state)]
            self._resting.change(memory, moves)
            self._state = with_leaves(self._state, memory)

    def last_values(self) -> Tensor:
        """Return the values of the observations the next step would act on."""
        return self.policy.value(self._observation(), state=self._live_state())

    @classmethod
    def values_before(cls, experience: Experience, step: int) -> Tensor:
        """Return what ``last_values`` would have been had the rollout ended before this step."""
        return experience["values"][step].clone()

    def segment_states(self, indices: Tensor) -> Any:
        """Return a recurrent policy's memory at the start of the segments with these indices."""
        states = _stack_states(self._segment_states)
        return _map_state(lambda tensor: tensor.index_select(0, indices), states)

    def segment_memory(self) -> list[list[Tensor]]:
        """Return the tensors of a recurrent policy's memory at the start of each segment of the rollout."""
        return [leaves(state) for state in self._segment_states]

    def besides(self) -> Plain:
        """Return what else the last rollout has to tell, for who has it played as a task."""
        return None

    def metrics(self) -> dict[str, float]:
        """Return numbers about the collection itself that are worth a look."""
        return {}

    def close(self) -> None:
        """Release what is held for collection alone; collecting again takes it again."""

    def state_dict(self) -> dict[str, Plain]:
        """Return all that makes collection go on with the same bits."""
        return {
            **self.place(),
            "generator": self.generator.get_state().clone(),
            "recent": [[return_, length] for return_, length in self.recent],
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.go_to(saved)
        self.generator.set_state(saved["generator"])
        self.recent = deque(((return_, int(length)) for return_, length in saved["recent"]), maxlen=EPISODES_IN_MEAN)

    def place(self) -> dict[str, Plain]:
        """Return where collection stands: the environments, and what the policy remembers of them."""
        return {
            "envs": self.envs.state_dict(),
            "memory": [] if self._state is None else [tensor.clone() for tensor in leaves(self._state)],
            "resting": self._resting.state_dict(),
            "noise": {} if self._noise is None else self._noise.state_dict(),
        }

    def go_to(self, saved: Mapping[str, Plain]) -> None:
        """Collect from a saved place on."""
        self.envs.load_state_dict(saved["envs"])
        if self._state is not None:
            self._state = with_leaves(self._state, [tensor.clone() for tensor in saved["memory"]])
            self._resting.load_state_dict(saved["resting"])
        if self._noise is not None:
            self._noise.load_state_dict(saved["noise"])

    def _note(self, finished: list[Episode]) -> list[Episode]:
        """Keep the figures of finished episodes, and return them."""
        self.recent.extend((episode.return_, episode.length) for episode in finished)
        return finished

    def _act(self, step: int, loop: RolloutLoop) -> np.ndarray[Any, Any]:
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


def with_finite_returns(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes that count: another would make every mean with it, and what is saved, not finite either."""
    return [episode for episode in episodes if math.isfinite(episode.return_)]


def episode_stats(episodes: list[Episode]) -> dict[str, list[float]]:
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


def with_leaves(state: Any, tensors: Sequence[Tensor]) -> Any:
    """Return a memory of the same form, made of other tensors, in order."""
    rest = iter(tensors)
    return _map_state(lambda _tensor: next(rest), state)


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
