"""Gymnasium's spaces as specs, and how observations and actions cross over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces

from hookloop.rl.envs.errors import EnvMismatchError, UnsupportedSpaceError
from hookloop.rl.specs import (
    ActionSpec,
    Array,
    ArraySpec,
    ContinuousActions,
    DiscreteActions,
    MultiDiscreteActions,
    ObservationSpec,
)

MASK_KEY = "action_mask"
"""Where Gymnasium's environments put their action mask: in the info, or in a dict observation."""

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ObservationLayout:
    """Where the arrays of a spec lie in what an environment returns."""

    spec: ObservationSpec
    paths: tuple[Path, ...]
    has_mask: bool

    def leaves(self, observation: Any, who: str) -> list[Any]:
        """Return the parts of an observation in the order of ``spec.arrays``."""
        if not self.spec.is_dict:
            return [observation]
        return [_at(observation, path, who) for path in self.paths]


def observation_layout(space: spaces.Space) -> ObservationLayout:
    """Describe an observation space; an action mask among its keys is taken out, for it is nothing to observe."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return ObservationLayout(ObservationSpec.single(_array_spec(space, "observation")), ((),), has_mask=False)
    arrays: dict[str, ArraySpec] = {}
    paths: list[Path] = []
    has_mask = False
    for path, leaf in _walk(space, ()):
        if path == (MASK_KEY,):
            has_mask = True
            continue
        key = "/".join(map(str, path))
        if key in arrays:
            raise UnsupportedSpaceError(
                f"Two parts of the observation space {space} are both called {key!r} once nested keys are joined by "
                "'/'. Rename one of them."
            )
        arrays[key] = _array_spec(leaf, f"observation[{key!r}]")
        paths.append(path)
    return ObservationLayout(ObservationSpec(arrays), tuple(paths), has_mask)


class ActionTranslation:
    """Turns the actions of a policy into what the environments take.

    Every call returns a new array: an environment may keep the action it was given, to punish a change of it say,
    and must not find it overwritten on the next step.
    """

    def __init__(self, space: spaces.Space) -> None:
        self.spec: ActionSpec
        self._box: tuple[Array, Array] | None = None
        self._start: Array | None = None
        self._dtype = space.dtype
        if isinstance(space, spaces.Discrete):
            self.spec = DiscreteActions(int(space.n))
            self._start = np.asarray(space.start) if space.start else None
        elif isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
            self.spec = MultiDiscreteActions(tuple(space.nvec.tolist()))
            self._start = space.start if space.start.any() else None
        elif isinstance(space, spaces.MultiBinary) and len(space.shape) == 1:
            self.spec = MultiDiscreteActions((2,) * space.shape[0])
        elif isinstance(space, spaces.Box) and np.dtype(space.dtype).kind == "f":
            self.spec = ContinuousActions.between(space.low, space.high)
            self._box = (space.low, space.high)
        else:
            raise UnsupportedSpaceError(
                f"The action space {space} is not supported; use a Discrete, a MultiDiscrete or MultiBinary of one "
                "axis, or a Box of floats, by a wrapper that translates if need be."
            )

    def __call__(self, actions: Array) -> Array:
        """Return what to hand over: shifted to the first action, or clipped to the box."""
        if self._box is not None:
            # Two ufuncs, because np.clip spends several times their time on its arguments.
            handed = np.maximum(actions, self._box[0], dtype=self._dtype, casting="same_kind")
            return np.minimum(handed, self._box[1], out=handed)
        handed = np.array(actions, dtype=self._dtype)
        if self._start is not None:
            handed += self._start
        return handed


def _walk(space: spaces.Space, path: Path) -> Iterator[tuple[Path, spaces.Space]]:
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _walk(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from _walk(part, (*path, index))
    else:
        yield path, space


def _array_spec(space: spaces.Space, field: str) -> ArraySpec:
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return ArraySpec((), np.dtype(space.dtype).name, num_values=start + int(space.n) if start >= 0 else None)
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return ArraySpec(tuple(space.shape), np.dtype(space.dtype).name)
    raise UnsupportedSpaceError(
        f"The {field} has the space {space}, which no array of fixed shape can hold; use Box, Discrete, MultiDiscrete, "
        "MultiBinary, or a Dict or Tuple of them, by a wrapper that encodes if need be."
    )


def _at(observation: Any, path: Path, who: str) -> Any:
    part = observation
    for key in path:
        try:
            part = part[key]
        except (KeyError, IndexError, TypeError) as error:
            has = sorted(map(str, part)) if isinstance(part, dict) else type(part).__name__
            raise EnvMismatchError(
                f"{who} gave an observation without {'/'.join(map(str, path))!r}, which its observation space "
                f"declares; it has {has}."
            ) from error
    return part
