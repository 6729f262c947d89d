"""Environments of several lessons behind one face: each group of rows plays the lesson it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookloop.core import derive_seed
from hookloop.errors import UnknownNameError
from hookloop.rl.envs.base import Envs, EnvState, Episode, Exactness
from hookloop.rl.envs.errors import ActionMismatchError, EnvMismatchError, EnvStateError
from hookloop.rl.specs import Array, Observations

MakeEnvs = Callable[[int], Envs]
"""Makes so many environments of one lesson."""

_COPIED = ("rewards", "terminated", "truncated", "valid", "episode_returns", "episode_lengths")


@dataclass(frozen=True, slots=True)
class Move:
    """A slot that changed its lesson: its rows, what it left, and what it plays now."""

    rows: slice
    left: str
    entered: str


class LessonEnvs:
    """N environments in slots of equal size; the environments of a slot play one lesson until it is given another.

    A slot has environments of its own for each lesson it has played. Those of the lesson it leaves rest in the middle
    of their episodes, and go on from there when it comes back: no episode is cut off by the choice of lessons, and
    long ones are not rarer for it. Environments are made when a slot first plays a lesson.

    Args:
        make: How to make environments of each lesson; all with the same observations and actions.
        num_envs: N.
        slots: How many groups; N is a multiple of it.
    """

    def __init__(self, make: Mapping[str, MakeEnvs], *, num_envs: int, slots: int) -> None:
        if not make:
            raise EnvMismatchError("LessonEnvs needs at least one lesson, got none.")
        if num_envs % slots:
            raise EnvMismatchError(
                f"{num_envs} environments cannot be shared out evenly among {slots} slots; "
                "make num_envs a multiple of curriculum.slots."
            )
        self._make = dict(make)
        self.num_envs, self.slots = num_envs, slots
        size = num_envs // slots
        self._rows = [slice(slot * size, (slot + 1) * size) for slot in range(slots)]
        # One of each lesson, so that spaces that do not fit are found now and not when a lesson opens after hours.
        self._envs: dict[tuple[int, str], Envs] = {(0, name): made(size) for name, made in self._make.items()}
        first_name = next(iter(self._make))
        first = self._envs[0, first_name]
        for name in self._make:
            _require_alike(first, self._envs[0, name], (first_name, name))
        self.observation, self.action = first.observation, first.action
        self.has_fillers = any(envs.has_fillers for envs in self._envs.values())
        self._allocate(first)
        self.finished: list[Episode] = []
        self.played: list[tuple[str, float]] = []
        self.lessons = [first_name] * slots
        self._seed: int | None = None

    @property
    def num_double_ends(self) -> int:
        """How often both flags were set on one step."""
        return sum(envs.num_double_ends for envs in self._envs.values())

    @property
    def exactness(self) -> Exactness:
        """What a resume promises."""
        return "learner-exact" if self.inexact_because else "bit-exact"

    @property
    def inexact_because(self) -> str:
        """Why the environments cannot save themselves; empty if they all can."""
        return next((why for envs in self._envs.values() if (why := envs.inexact_because)), "")

    def reset(self, seed: int) -> None:
        """Begin new episodes everywhere; resting ones are forgotten."""
        self._seed = int(seed)
        self.finished, self.played = [], []
        for slot, lesson in enumerate(self.lessons):
            self._envs_of(slot, lesson)
        for (slot, lesson), envs in self._envs.items():
            envs.reset(self._seed_of(slot, lesson))
        for slot in range(self.slots):
            self._show(slot)

    def assign(self, lessons: Sequence[str]) -> list[Move]:
        """Give each slot a lesson, and return what moved; between two steps."""
        if self._seed is None:
            raise ActionMismatchError("The slots were given lessons before the first reset. Call reset(seed) first.")
        if len(lessons) != self.slots:
            raise EnvMismatchError(f"There are {self.slots} slots, got {len(lessons)} lessons; give each slot one.")
        moves: list[Move] = []
        for slot, (before, after) in enumerate(zip(self.lessons, lessons, strict=True)):
            if before != after:
                self._envs_of(slot, after)
                self.lessons[slot] = after
                self._show(slot)
                moves.append(Move(self._rows[slot], before, after))
        return moves

    def step(self, actions: Array) -> None:
        """Act once in every environment that does not rest."""
        self.finished = []
        for slot, lesson in enumerate(self.lessons):
            envs, rows = self._envs[slot, lesson], self._rows[slot]
            envs.step(actions[rows])
            self._show(slot)
            if envs.finished:
                self.finished += [ended._replace(env_index=rows.start + ended.env_index) for ended in envs.finished]
                self.played += [(lesson, ended.return_) for ended in envs.finished]

    def drain_played(self) -> dict[str, list[float]]:
        """Hand over the returns of the episodes that ended since the last call, by lesson."""
        returns: dict[str, list[float]] = {}
        for lesson, return_ in self.played:
            returns.setdefault(lesson, []).append(return_)
        self.played = []
        return returns

    def check_next_steps(self, count: int) -> None:
        """Check the results of the next ``count`` steps in full."""
        for envs in self._envs.values():
            envs.check_next_steps(count)

    def state_dict(self) -> EnvState:
        """Return the state of all environments, the resting ones included."""
        return {
            "seed": self._seed,
            "lessons": list(self.lessons),
            "played": [[lesson, return_] for lesson, return_ in self.played],
            "envs": [
                [slot, lesson, envs.state_dict()] for (slot, lesson), envs in sorted(self._envs.items(), key=_key)
            ],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        if "lessons" not in state:
            raise EnvStateError("The state was saved without lessons; leave the curriculum out, or start a new run.")
        saved = {(int(slot), str(lesson)): kept for slot, lesson, kept in state["envs"]}
        for lesson in {*(lesson for _, lesson in saved), *state["lessons"]}:
            self._require(lesson)
        if len(state["lessons"]) != self.slots or any(not 0 <= slot < self.slots for slot, _ in saved):
            raise EnvStateError(
                f"The state was saved for {len(state['lessons'])} slots, here there are {self.slots}. "
                "Make the environments as they were made for the saved run, or start a new run."
            )
        for key in [key for key in self._envs if key not in saved]:
            self._envs.pop(key).close()
        self._seed, self.lessons = state["seed"], list(state["lessons"])
        self.played = [(str(lesson), float(return_)) for lesson, return_ in state["played"]]
        self.finished = []
        for (slot, lesson), kept in saved.items():
            if (slot, lesson) not in self._envs:
                self._envs[slot, lesson] = self._make[lesson](self.num_envs // self.slots)
            self._envs[slot, lesson].load_state_dict(kept)
        for slot in range(self.slots):
            self._show(slot)

    def close(self) -> None:
        """Release what the environments of all lessons hold."""
        for envs in self._envs.values():
            envs.close()

    def _allocate(self, like: Envs) -> None:
        self.obs: Observations = self.observation.zeros(self.num_envs)
        self.final_obs: Observations = self.observation.zeros(self.num_envs)
        self.rewards = np.zeros(self.num_envs, dtype=np.float32)
        self.terminated = np.zeros(self.num_envs, dtype=bool)
        self.truncated = np.zeros(self.num_envs, dtype=bool)
        self.valid = np.ones(self.num_envs, dtype=bool)
        self.episode_returns = np.zeros(self.num_envs, dtype=np.float64)
        self.episode_lengths = np.zeros(self.num_envs, dtype=np.int64)
        masks = like.action_masks
        self.action_masks = None if masks is None else np.ones((self.num_envs, *masks.shape[1:]), dtype=bool)

    def _envs_of(self, slot: int, lesson: str) -> Envs:
        """Return a slot's environments of a lesson, made and begun if it never played it."""
        self._require(lesson)
        if (slot, lesson) not in self._envs:
            envs = self._envs[slot, lesson] = self._make[lesson](self.num_envs // self.slots)
            envs.reset(self._seed_of(slot, lesson))
        return self._envs[slot, lesson]

    def _seed_of(self, slot: int, lesson: str) -> int:
        return derive_seed(self._seed or 0, "lesson", slot, lesson) % 2**31

    def _show(self, slot: int) -> None:
        """Copy what the slot's environments show into its rows."""
        envs, rows = self._envs[slot, self.lessons[slot]], self._rows[slot]
        for name in _COPIED:
            getattr(self, name)[rows] = getattr(envs, name)
        if self.action_masks is not None:
            self.action_masks[rows] = envs.action_masks
        _copy(envs.obs, self.obs, rows)
        if envs.finished:
            _copy(envs.final_obs, self.final_obs, rows)

    def _require(self, lesson: str) -> None:
        if lesson not in self._make:
            raise UnknownNameError("lesson", lesson, self._make, where="in these environments")


def _copy(source: Observations, target: Observations, rows: slice) -> None:
    if isinstance(source, dict) and isinstance(target, dict):
        for key, values in source.items():
            target[key][rows] = values
    elif isinstance(target, np.ndarray):
        target[rows] = source


def _key(item: tuple[tuple[int, str], Envs]) -> tuple[int, str]:
    return item[0]


def _require_alike(first: Envs, other: Envs, names: tuple[str, str]) -> None:
    for what, here, there in (
        ("observations", first.observation, other.observation),
        ("actions", first.action, other.action),
        ("action masks", first.action_masks is None, other.action_masks is None),
    ):
        if here != there:
            raise EnvMismatchError(
                f"The lessons {names[0]!r} and {names[1]!r} differ in their {what}: {here} and {there}. "
                "One policy plays them all, so they need the same."
            )
