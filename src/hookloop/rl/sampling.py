"""How an epoch's experience is cut into minibatches: in order, shuffled, or by the size of the advantage.

The unit of sampling is a segment of ``segment_length`` consecutive steps of one environment; for policies without
memory a segment is one step. Axes: L steps of a segment, B segments (rows) of a minibatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor

from hookloop.errors import ConfigError
from hookloop.rl.experience import Experience, gather_observation

Sampling = Literal["shuffled", "sequential", "prioritised"]


@dataclass(slots=True)
class Minibatch:
    """Rows of experience that are trained on together."""

    obs: Tensor | dict[str, Tensor]
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    columns: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    """Everything else that was stored, such as what a loss asked for."""
    masks: Tensor | None = None
    weights: Tensor | None = None
    """The weight of each row in a mean; None when all count alike."""
    starts: Tensor | None = None
    state: Any = None
    """A recurrent policy's memory at the first step of each segment."""
    indices: Tensor | None = None

    @property
    def num_rows(self) -> int:
        """How many transitions there are."""
        return self.advantages.numel()


def check_arithmetic(*, num_envs: int, horizon: int, num_minibatches: int, segment_length: int) -> None:
    """Refuse sizes that cannot be cut evenly, naming the nearest that can."""
    for name, value in (("num_envs", num_envs), ("horizon", horizon), ("num_minibatches", num_minibatches)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}.")
    if not 1 <= segment_length <= horizon or horizon % segment_length:
        near = _nearest_divisor(horizon, segment_length)
        raise ConfigError(
            f"horizon {horizon} cannot be cut into segments of {segment_length} steps; the nearest length that fits is "
            f"{near}, or use a horizon of {_nearest_multiple(horizon, max(segment_length, 1))}."
        )
    segments = num_envs * (horizon // segment_length)
    if segments % num_minibatches:
        near = _nearest_divisor(segments, num_minibatches)
        raise ConfigError(
            f"{segments} segments ({num_envs} environments x {horizon} steps / {segment_length}) cannot be dealt "
            f"evenly to {num_minibatches} minibatches; the nearest number that fits is {near}."
        )


class Sampler:
    """Cuts the collected experience into minibatches, pass after pass, without allocating for each.

    Args:
        experience: Where the transitions are.
        num_minibatches: How many minibatches one pass has.
        segment_length: Steps per segment; 1 for policies without memory.
        sampling: In which order, or by which weight, segments are drawn.
        alpha: How strongly ``prioritised`` prefers large advantages; 0 is uniform.
        beta: How far ``prioritised`` corrects for that preference; 1 is in full.
    """

    def __init__(
        self,
        experience: Experience,
        *,
        num_minibatches: int,
        segment_length: int = 1,
        sampling: Sampling = "shuffled",
        alpha: float = 0.6,
        beta: float = 1.0,
    ) -> None:
        check_arithmetic(
            num_envs=experience.num_envs,
            horizon=experience.horizon,
            num_minibatches=num_minibatches,
            segment_length=segment_length,
        )
        self.experience = experience
        self.num_minibatches = num_minibatches
        self.segment_length = segment_length
        self.sampling: Sampling = sampling
        self.alpha = alpha
        self.beta = beta
        self._has_fillers = True
        self._gathered = {name: torch.empty_like(self._as_rows(column)) for name, column in self._trained().items()}

    def passes(self, generator: torch.Generator, *, has_fillers: bool, states: Any = None) -> Iterator[Minibatch]:
        """Yield the minibatches of one pass; their tensors are overwritten by the next pass."""
        self._has_fillers = has_fillers
        if self.sampling == "sequential":
            yield from self._cut(self._eligible(), None, states, is_in_order=True)
        elif self.sampling == "shuffled":
            eligible = self._eligible()
            order = torch.randperm(eligible.numel(), generator=generator)
            yield from self._cut(eligible.index_select(0, order), None, states)
        else:
            yield from self._cut(*self._draw_by_advantage(generator), states)

    def _trained(self) -> dict[str, Tensor]:
        left_out = ("rewards", "terminated", "truncated", "bootstraps")
        keep_valid = self.segment_length > 1
        names = [n for n in self.experience.columns if n not in left_out and (n != "valid" or keep_valid)]
        return {name: self.experience.columns[name] for name in names}

    def _as_rows(self, column: Tensor) -> Tensor:
        """Return [T, N, ...] as [segments, ...] or, for segments of several steps, [segments, L, ...]."""
        steps, envs = column.shape[:2]
        if self.segment_length == 1:
            return column.view(steps * envs, *column.shape[2:])
        length = self.segment_length
        cut = column.view(steps // length, length, envs, *column.shape[2:])
        return cut.transpose(1, 2).reshape(-1, length, *column.shape[2:])

    def _eligible(self) -> Tensor:
        """Return the segments that may be drawn: all complete ones with at least one real transition."""
        complete = self.experience.steps // self.segment_length * self.experience.num_envs
        everything = torch.arange(complete)
        if not self._has_fillers:
            return everything
        valid = self._as_rows(self.experience["valid"])[:complete].view(complete, -1).any(dim=1)
        return everything[valid]

    def _draw_by_advantage(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        eligible = self._eligible()
        sizes = self._as_rows(self.experience["advantages"]).abs().view(-1, self.segment_length).mean(dim=1)
        priorities = (sizes.index_select(0, eligible) + 1e-8).pow_(self.alpha)
        chances = priorities / priorities.sum()
        drawn = torch.multinomial(chances, eligible.numel(), replacement=True, generator=generator)
        weights = (chances.index_select(0, drawn) * eligible.numel()).pow_(-self.beta)
        return eligible.index_select(0, drawn), weights / weights.max()

    def _cut(
        self, segments: Tensor, weights: Tensor | None, states: Any, *, is_in_order: bool = False
    ) -> Iterator[Minibatch]:
        count = segments.numel()
        is_whole = is_in_order and count == self.experience.horizon * self.experience.num_envs // self.segment_length
        gathered: dict[str, Tensor] = {}
        for name, column in self._trained().items():
            rows = self._as_rows(column)
            # One gather per pass; the minibatches are then contiguous slices.
            gathered[name] = (
                rows if is_whole else torch.index_select(rows, 0, segments, out=self._gathered[name][:count])
            )
        bounds = [count * k // self.num_minibatches for k in range(self.num_minibatches + 1)]
        for start, end in pairwise(bounds):
            if end > start:
                part = {name: rows[start:end] for name, rows in gathered.items()}
                yield self._minibatch(
                    part, segments[start:end], None if weights is None else weights[start:end], states
                )

    def _minibatch(self, part: dict[str, Tensor], indices: Tensor, weights: Tensor | None, states: Any) -> Minibatch:
        starts = None
        if self.segment_length > 1:
            # Recurrent policies read time first: [B, L, ...] becomes [L, B, ...].
            part = {name: column.transpose(0, 1) for name, column in part.items()}
            starts = part.pop("starts")
            valid = part.pop("valid").to(torch.float32)
            if self._has_fillers or weights is not None:
                weights = valid if weights is None else valid * weights
        flat = {name: _joined(column, self.segment_length) for name, column in part.items() if name in _PER_ROW}
        observations = {name: column for name, column in part.items() if name == "obs" or name.startswith("obs/")}
        extras = {name: c for name, c in part.items() if name not in flat and name not in observations}
        return Minibatch(
            obs=gather_observation(observations),
            **flat,
            columns=extras,
            masks=extras.pop("masks", None),
            weights=None if weights is None else weights.reshape(-1),
            starts=starts,
            state=None if states is None else states(indices),
            indices=indices,
        )


_PER_ROW = ("actions", "log_probs", "values", "advantages", "returns")


def _joined(column: Tensor, segment_length: int) -> Tensor:
    return column.reshape(-1, *column.shape[2:]) if segment_length > 1 else column


def _nearest_divisor(number: int, wanted: int) -> int:
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    return min(divisors, key=lambda d: (abs(d - wanted), d))


def _nearest_multiple(number: int, of: int) -> int:
    return max(of, round(number / of) * of)
