"""Sampling with a cache: all rows of a batch move on in step, each from its own prompt to its own end.

Prompts stand at the left, whatever their lengths. Where one row still has symbols of its prompt left and another draws,
both take their next symbol in the same step, so no row needs padding before it and every row is read as training reads
it: positions from 0, nothing masked but the future.

Legend: ``B`` rows, ``T`` positions, ``V`` symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from hookloop.errors import ConfigError
from hookloop.sequences.vocabulary import END, PAD
from hookloop.supervised.models.cache import CachedReader
from hookloop.supervised.models.gpt import GPT


@dataclass(frozen=True, slots=True)
class Completions:
    """Prompts and what was drawn after them."""

    tokens: Tensor
    """[B, T]: prompt, completion, padding."""
    log_probs: Tensor
    """[B, T]: of what was drawn, where it stands; 0 elsewhere."""
    prompt_lengths: Tensor
    """[B]"""
    lengths: Tensor
    """[B]: symbols drawn, the end among them."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How the next symbol is drawn.

    Args:
        temperature: Below 1 the likely ones are drawn more often; at 0 always the likeliest.
        top_k: Draw from so many of the likeliest alone.
    """

    temperature: float = 1.0
    top_k: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ConfigError(f"A temperature must be 0 or more, got {self.temperature}; 1 draws by probability.")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k must be at least 1 symbol, got {self.top_k}; None draws from all.")

    def draw(self, scores_BV: Tensor, noise_BV: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return symbols [B] and their log-probabilities [B] among those that could have been drawn.

        The likeliest, at temperature 0, comes with the log-probability that the model gives it.
        """
        if self.temperature not in (0, 1):
            scores_BV = scores_BV / self.temperature
        if self.top_k is not None and self.top_k < scores_BV.shape[-1]:
            least_B1 = scores_BV.topk(self.top_k, dim=-1).values[:, -1:]
            scores_BV = scores_BV.masked_fill(scores_BV < least_B1, -math.inf)
        log_probs_BV = functional.log_softmax(scores_BV, dim=-1)
        if self.temperature == 0:
            found_B = log_probs_BV.argmax(dim=-1)
        else:
            # The first of exponential clocks to ring is drawn by its rate; no table of sums is needed.
            found_B = log_probs_BV.exp().div_(noise_BV.exponential_(generator=generator)).argmax(dim=-1)
        return found_B, log_probs_BV.gather(-1, found_B[:, None])[:, 0]


def padded(rows: Sequence[Sequence[int]], length: int) -> Tensor:
    """Return rows of numbers as one tensor [B, length], with padding after them."""
    return torch.tensor([[*row, *[PAD] * (length - len(row))] for row in rows], dtype=torch.int64)


@torch.no_grad()
def complete(
    model: GPT,
    prompts: Sequence[Sequence[int]],
    most_drawn: int,
    *,
    generator: torch.Generator,
    drawing: Drawing | None = None,
) -> Completions:
    """Complete all prompts together; the same generator gives the same bits.

    Args:
        model: What says how likely each symbol is; without dropout, whatever mode it is in.
        prompts: Symbols by number; none is empty.
        most_drawn: A row that has not drawn its end by then is cut off.
        generator: What the symbols are drawn with.
        drawing: Temperature and the like.
    """
    drawing = drawing if drawing is not None else Drawing()
    counts = [len(prompt) for prompt in prompts]
    if not counts or min(counts) < 1:
        raise ConfigError("There is nothing to complete: a batch needs prompts of at least one symbol each.")
    first, width = min(counts), max(counts) + most_drawn
    begins_B = torch.tensor(counts)
    places_T1 = torch.arange(width)[:, None]
    window_TB = (places_T1 >= begins_B) & (places_T1 < begins_B + most_drawn)
    has_more_TB = places_T1 + 1 < begins_B + most_drawn
    # Time comes first, so that what is written in a step lies together.
    tokens_TB = padded(prompts, width).t().contiguous()
    log_probs_TB = torch.zeros(width, len(prompts))
    alive_B = torch.ones(len(prompts), dtype=torch.bool)
    noise_BV = torch.empty(len(prompts), model.symbol.num_embeddings)
    reader = CachedReader(model, len(prompts), width)
    scores_BV = reader.read(tokens_TB[:first].t())
    for place in range(first, width):
        drawn_B, log_probs_TB[place] = drawing.draw(scores_BV, noise_BV, generator)
        draws_B = window_TB[place] & alive_B
        tokens_TB[place] = torch.where(draws_B, drawn_B, tokens_TB[place])
        alive_B &= tokens_TB[place] != END
        if not (alive_B & has_more_TB[place]).any():  # on a CPU the answer costs less than a step for nothing
            break
        scores_BV = reader.read(tokens_TB[place][:, None])
    is_end_TB = (tokens_TB == END).int()
    mask_TB = window_TB & (is_end_TB.cumsum(dim=0) == is_end_TB)
    log_probs_TB.masked_fill_(~mask_TB, 0.0)
    return Completions(tokens_TB.t().contiguous(), log_probs_TB.t().contiguous(), begins_B, mask_TB.sum(dim=0))
