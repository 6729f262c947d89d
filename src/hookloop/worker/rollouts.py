"""Rollouts: what a worker generates, as plain data that fits episodes of environments and sequences of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

Plain = Any


@dataclass(frozen=True, slots=True)
class Rollout:
    """One episode, or one response to a prompt: what was done, with which weights, and what it earned.

    ``arrays`` holds the rest by name, each a numpy array whose first axis is time. An episode has ``observations``
    (one more than steps), ``actions``, ``rewards``, ``values`` and ``log_probs``; a sequence has ``prompt_tokens``,
    ``response_tokens`` and the ``log_probs`` of the response.
    """

    lesson: str | None
    """The name of the lesson; None where there is no curriculum."""
    reward: float
    """What it earned in all: the return of an episode, the reward of a response."""
    length: int
    """Steps of the environment, or tokens of the response."""
    weight_version: int
    """Of the weights it was generated with."""
    arrays: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    group: str | None = None
    """Rollouts that answer the same prompt share it; None for those that stand alone."""
    about: Mapping[str, Plain] = field(default_factory=dict)
    """What else there is to say, in strict JSON: how an episode ended, the texts of prompt and response."""
    worker_step: int = 0
    """The step of the worker that generated it; the worker fills this in, and the time."""
    created_seconds: float = 0.0
    """When it was generated, in seconds since 1970."""

    def state_dict(self) -> dict[str, Plain]:
        """Return plain data and arrays."""
        saved = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**saved, "arrays": dict(self.arrays), "about": dict(self.about)}

    @classmethod
    def from_state_dict(cls, saved: Mapping[str, Plain]) -> Rollout:
        """Return the rollout that was saved."""
        return cls(**saved)


def mean_reward(rollouts: Sequence[Rollout]) -> float:
    """Return the mean reward of at least one rollout."""
    return sum(rollout.reward for rollout in rollouts) / len(rollouts)


def success_rate(rollouts: Sequence[Rollout], success_return: float = 0.0) -> float:
    """Return the share of at least one rollout that earned more than this."""
    return sum(rollout.reward > success_return for rollout in rollouts) / len(rollouts)
