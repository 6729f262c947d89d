"""The experience of one epoch: preallocated, contiguous columns, written in place step by step.

Axes: T steps of collection, N environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookloop.errors import RegistrationError
from hookloop.rl.specs import ArraySpec

ExperienceSpec = Mapping[str, ArraySpec]

OBSERVATIONS = "obs"
BASE_COLUMNS: ExperienceSpec = {
    "rewards": ArraySpec((), "float32"),
    "terminated": ArraySpec((), "bool"),
    "truncated": ArraySpec((), "bool"),
    "valid": ArraySpec((), "bool"),
    "bootstraps": ArraySpec((), "float32"),
    "log_probs": ArraySpec((), "float32"),
    "values": ArraySpec((), "float32"),
    "advantages": ArraySpec((), "float32"),
    "returns": ArraySpec((), "float32"),
}


class ExperienceConflictError(RegistrationError):
    """Two parts of a trainer want the same column with another shape or dtype."""


def merge_specs(specs: Mapping[str, ExperienceSpec]) -> dict[str, ArraySpec]:
    """Join what the policy and the losses want stored; ``specs`` maps who asks to what they ask for."""
    merged: dict[str, ArraySpec] = dict(BASE_COLUMNS)
    owners = dict.fromkeys(BASE_COLUMNS, "the loop")
    for owner, spec in specs.items():
        for name, wanted in spec.items():
            if name in merged and merged[name] != wanted:
                raise ExperienceConflictError(
                    f"{owner} wants the column {name!r} as {_words(wanted)}, but {owners[name]} has it as "
                    f"{_words(merged[name])}; one of the two must use another name."
                )
            merged[name] = wanted
            owners.setdefault(name, owner)
    return merged


class Experience:
    """Columns of one epoch's transitions; ``experience["rewards"]`` is a tensor [T, N, ...].

    Args:
        spec: The columns, by name, with shape and dtype per step and environment.
        num_envs: N.
        horizon: T.
    """

    def __init__(self, spec: ExperienceSpec, *, num_envs: int, horizon: int) -> None:
        self.spec = dict(spec)
        self.num_envs = num_envs
        self.horizon = horizon
        self.steps = 0
        self.columns: dict[str, Tensor] = {
            name: torch.zeros((horizon, num_envs, *column.shape), dtype=getattr(torch, column.dtype))
            for name, column in self.spec.items()
        }
        # The same memory as numpy sees it, and one view per step made once: slicing a tensor costs more than
        # copying a small row.
        self.arrays: dict[str, NDArray[Any]] = {name: column.numpy() for name, column in self.columns.items()}
        self.rows: dict[str, list[Tensor]] = {name: list(column.unbind(0)) for name, column in self.columns.items()}

    def __getitem__(self, name: str) -> Tensor:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    @property
    def observation_names(self) -> list[str]:
        """The columns that hold observations: one, or one per entry of a dict."""
        return [name for name in self.columns if name == OBSERVATIONS or name.startswith(f"{OBSERVATIONS}/")]

    def observation_at(self, step: int) -> Tensor | dict[str, Tensor]:
        """Return the observations of one step, as the policy takes them."""
        return gather_observation({name: self.rows[name][step] for name in self.observation_names})

    def begin(self) -> None:
        """Empty the buffer: the next epoch starts at step 0."""
        self.steps = 0
        self.arrays["bootstraps"].fill(0)

    def ends(self) -> NDArray[np.bool_]:
        """Return where an episode ended, however it did."""
        return self.arrays["terminated"][: self.steps] | self.arrays["truncated"][: self.steps]

    def memory_bytes(self) -> int:
        """Return the size of all columns."""
        return sum(column.numel() * column.element_size() for column in self.columns.values())


def gather_observation(columns: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
    """Turn observation columns back into what the environment gave: one tensor, or a dict of them."""
    if OBSERVATIONS in columns:
        return columns[OBSERVATIONS]
    return {name.removeprefix(f"{OBSERVATIONS}/"): column for name, column in columns.items()}


def _words(spec: ArraySpec) -> str:
    return f"{spec.dtype}{list(spec.shape)}"
