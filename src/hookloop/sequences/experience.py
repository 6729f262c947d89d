"""What one rollout has given, and the minibatches of groups that losses learn from.

Legend: ``G`` groups (a prompt with its completions), ``K`` completions of a group, ``R`` rows = G * K, ``T`` positions,
``E`` examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from hookloop.supervised.models.gpt import GPT


@dataclass(slots=True)
class Sequences:
    """The completions of all slots of an epoch."""

    tokens: Tensor
    """[R, T]: prompt, completion, padding."""
    log_probs: Tensor
    """[R, T]: of what was drawn, when it was drawn."""
    mask: Tensor
    """[R, T]: 1 where a symbol was drawn, 0 on prompts and padding."""
    rewards: Tensor
    """[G, K]"""
    example_tokens: Tensor | None = None
    """[G, T]: each prompt with its right answer."""
    example_mask: Tensor | None = None
    """[G, T]: 1 on right answers; nothing in a row whose lesson knows none."""
    reference: Tensor | None = None
    """[R, T]: log-probabilities by the reference, if a loss asks for them."""

    @classmethod
    def joined(cls, slots: Sequence[Mapping[str, Tensor]]) -> Sequences:
        """Join the results of rollouts, slot after slot."""
        lengths = torch.cat([each["lengths"] for each in slots])
        begins = torch.cat([each["prompt_lengths"] for each in slots])
        width = int((begins + lengths).max())
        found = cls(
            _joined([each["tokens"] for each in slots], width),
            _joined([each["log_probs"] for each in slots], width),
            _between(begins, lengths, width),
            torch.cat([each["rewards"] for each in slots]),
        )
        if "example_tokens" in slots[0]:
            rows = [each["example_tokens"] for each in slots]
            width = max(each.shape[1] for each in rows)
            found.example_tokens = _joined(rows, width)
            group_begins = begins[:: found.rewards.shape[1]]
            found.example_mask = _between(group_begins, torch.cat([each["example_lengths"] for each in slots]), width)
        return found

    @property
    def group_size(self) -> int:
        """The completions of a group."""
        return self.rewards.shape[1]


@dataclass(slots=True)
class SequenceMinibatch:
    """Some groups, and the model's view of their completions, computed at most once for all losses.

    What losses return is a mean over these groups: one that has nothing to learn from a group counts it as 0.
    """

    model: GPT
    sequences: Sequences
    groups: Tensor
    """Their numbers."""
    drawn_groups: Tensor
    """Those among them whose completions are learned from; of the others nothing is computed."""
    advantages: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    """[G, K] of the whole epoch, by the name of the loss."""
    temperature: float = 1.0
    _log_probs: Tensor | None = None

    @property
    def rows(self) -> Tensor:
        """The completions that are learned from, group by group."""
        size = self.sequences.group_size
        return (self.drawn_groups[:, None] * size + torch.arange(size)).reshape(-1)

    @property
    def mask(self) -> Tensor:
        """[R, T] of its rows: 1 where a symbol was drawn."""
        return self.sequences.mask[self.rows]

    @property
    def old_log_probs(self) -> Tensor:
        """[R, T] of what was drawn, when it was drawn."""
        return self.sequences.log_probs[self.rows]

    @property
    def reference(self) -> Tensor:
        """[R, T] of what was drawn, by the reference."""
        assert self.sequences.reference is not None, "a loss that has a reference says so in needs_reference"
        return self.sequences.reference[self.rows]

    @property
    def log_probs(self) -> Tensor:
        """[R, T] of what was drawn, by the model as it is now, with gradients; 0 where nothing was."""
        if self._log_probs is None:
            tokens = self.sequences.tokens[self.rows]
            self._log_probs = token_log_probs(self.model, tokens, self.mask, self.temperature)
        return self._log_probs

    def advantages_of(self, loss: str) -> Tensor:
        """The advantages [R] of its rows as a loss sees them."""
        return self.advantages[loss][self.drawn_groups].reshape(-1)

    def mean(self, values_R: Tensor) -> Tensor:
        """Return the mean over the completions of all its groups, given one value for each of its rows."""
        return values_R.sum() / (len(self.groups) * self.sequences.group_size)


def token_log_probs(model: GPT, tokens_RT: Tensor, mask_RT: Tensor, temperature: float = 1.0) -> Tensor:
    """Return the log-probabilities [R, T] that a model gives symbols where they stand; 0 where the mask is."""
    scores = model(tokens_RT[:, :-1])
    if temperature != 1:
        scores = scores / temperature
    found = functional.log_softmax(scores, dim=-1).gather(-1, tokens_RT[:, 1:, None])[..., 0]
    return functional.pad(found, (1, 0)) * mask_RT


def _joined(rows: Sequence[Tensor], width: int) -> Tensor:
    return torch.cat([functional.pad(each[:, :width], (0, max(0, width - each.shape[1]))) for each in rows])


def _between(begins_R: Tensor, lengths_R: Tensor, width: int) -> Tensor:
    places_T = torch.arange(width)
    begins = begins_R[:, None]
    return ((places_T >= begins) & (places_T < begins + lengths_R[:, None])).float()
