"""A rollout as a task: the same place, weights and random key give the same experience, whoever plays it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

from hookloop.core import TrainerState
from hookloop.rl.collector import Collector
from hookloop.rl.columns import wanted_columns
from hookloop.rl.envs import Envs
from hookloop.rl.experience import Experience, merge_specs
from hookloop.rl.policies import Policy
from hookloop.rl.slots.envs import why_inexact
from hookloop.rl.slots.statistics import keep_apart, refresh_scaling

Plain = Any
Tag = list[int]
"""Which state a slot's environments are in: after which iteration, played with which version of the weights."""

MakeEnvs = Callable[[], Envs]
MakePolicy = Callable[[Any], Policy]

ESTIMATED = ("advantages", "returns")
"""The columns that the learner fills."""


class RolloutPerformer:
    """Plays rollouts of any slot; a ``hookloop.pools.Performer``.

    The environments of each slot it has played stay as they are. When the slot comes again and nobody else has played
    it meanwhile, it goes on in them; otherwise it puts them into the state that the task brings.

    Args:
        make_envs: Makes the environments of one slot.
        make_policy: Makes the policy that acts in them.
        collector_type: What collects.
        horizon: Steps of a rollout.
        segment_length: Steps after which a recurrent policy's memory is kept.
    """

    def __init__(
        self,
        make_envs: MakeEnvs,
        make_policy: MakePolicy,
        *,
        collector_type: type[Collector] = Collector,
        horizon: int,
        segment_length: int = 1,
    ) -> None:
        self._make_envs = make_envs
        self._collector_type = collector_type
        self._horizon = horizon
        self._segment_length = segment_length
        self._spare: Envs | None = make_envs()
        self.policy = make_policy(self._spare)
        """What acts, in all slots."""
        self._version = -1
        self._players: dict[int, SlotPlayer] = {}

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Play with these weights from now on."""
        self.policy.load_state_dict(dict(tensors))
        self._version = version

    def perform(self, payload: Plain) -> Plain:
        """Play one rollout of a slot."""
        slot = payload["slot"]
        if slot not in self._players:
            self._players[slot] = self.make_player(slot)
        with one_thread():
            return self._players[slot].play(payload, self._version)

    def close(self) -> None:
        """Close the environments."""
        for player in self._players.values():
            player.collector.envs.close()
        if self._spare is not None:
            self._spare.close()

    def make_player(self, slot: int) -> SlotPlayer:
        """Make what plays the rollouts of a slot."""
        envs, self._spare = self._make_envs() if self._spare is None else self._spare, None
        experience = Experience(
            merge_specs(wanted_columns(self.policy, envs, (), self._collector_type)),
            num_envs=envs.num_envs,
            horizon=self._horizon,
        )
        experience["valid"].fill_(True)
        collector = self._collector_type(
            envs, self.policy, experience, (), generator=torch.Generator(), segment_length=self._segment_length
        )
        return SlotPlayer(collector)


class SlotPlayer:
    """Plays the rollouts of one slot."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self._statistics = keep_apart(collector.envs)
        self._tag: Tag | None = None

    def play(self, payload: Mapping[str, Plain], version: int) -> dict[str, Plain]:
        """Return the experience of one rollout, and where it has led to."""
        collector = self.collector
        has_begun_anew = self._go_to(payload)
        collector.generator.manual_seed(payload["key"])
        notes = RolloutNotes(collector)
        self._tag = None  # whatever fails in the middle leaves environments that nobody knows
        collector.collect(notes)
        self._tag = [payload["iteration"], version]
        arrays = collector.experience.arrays
        return {
            "columns": {name: column.copy() for name, column in arrays.items() if name not in ESTIMATED},
            "last_values": collector.last_values(),
            "memory": collector.segment_memory(),
            "episodes": notes.episodes,
            "env_steps": notes.env_steps,
            "besides": collector.besides(),
            "place": collector.place(),
            "has_begun_anew": has_begun_anew,
            "added": {name: statistics.added.state_dict() for name, statistics in self._statistics.items()},
        }

    def _go_to(self, payload: Mapping[str, Plain]) -> bool:
        """Bring the environments where the rollout begins; True if they could not, and began new episodes instead."""
        envs, has_begun_anew = self.collector.envs, False
        if payload["place"] is None:
            self._begin_statistics(payload)  # first: what a reset shows counts
            envs.reset(payload["seed"])
            return False
        if self._tag is None or self._tag != payload["after"]:
            self.collector.go_to(payload["place"])
            has_begun_anew = bool(why_inexact(payload["place"]["envs"]))
        self._begin_statistics(payload)
        refresh_scaling(envs)
        return has_begun_anew

    def _begin_statistics(self, payload: Mapping[str, Plain]) -> None:
        for name, statistics in self._statistics.items():
            statistics.begin(payload["statistics"][name])


class RolloutNotes:
    """Stands where collection expects a loop, and notes what the learner's loop is to be told."""

    def __init__(self, collector: Collector) -> None:
        self.state = TrainerState()
        self.episodes: list[list[Plain]] = []
        """Of each that ended: the step, the environment, return, length, and the numbers that came with the end."""
        self.env_steps: list[int] = []
        self._envs = collector.envs

    def rollout(self) -> AbstractContextManager[None]:
        """Surround collection."""
        return nullcontext()

    def step(self, env_steps: int = 1, episodes: int = 0) -> None:
        """Note one vector step."""
        if episodes:
            step = len(self.env_steps)
            self.episodes += [
                [step, ended.env_index, ended.return_, ended.length, dict(ended.infos)] for ended in self._envs.finished
            ]
        self.env_steps.append(env_steps)


@contextmanager
def one_thread() -> Generator[None]:
    """Compute with one thread of torch: sums could come out in another order with another number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
