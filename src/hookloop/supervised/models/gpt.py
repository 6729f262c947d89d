"""A small transformer that foretells the next symbol.

Legend: ``B`` samples, ``T`` positions, ``W`` width, ``H`` heads, ``V`` symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from hookloop.errors import ConfigError


class GPT(nn.Module):
    """Embeddings, blocks of attention and feed-forward, and scores of the next symbol at each position.

    Args:
        symbols: How many there are.
        block_size: The longest sequence it can read.
        layers: Blocks.
        heads: Heads of attention; they divide the width.
        width: Numbers a position is represented by.
        dropout: Share of activations left out in training.
    """

    def __init__(
        self,
        symbols: int,
        block_size: int,
        *,
        layers: int = 4,
        heads: int = 4,
        width: int = 128,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ConfigError(f"The heads must divide the width: {width} is no multiple of {heads}.")
        self.block_size = block_size
        self.symbol = nn.Embedding(symbols, width)
        self.position = nn.Embedding(block_size, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(_Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, symbols, bias=False)
        self.scores.weight = self.symbol.weight  # what a symbol means is how it is foretold
        self.apply(_initialise)
        for name, parameter in self.named_parameters():
            if name.endswith("back.weight"):  # each block adds to the sum twice; it should not grow with their number
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers))

    def forward(self, input_ids_BT: Tensor) -> Tensor:
        """Return the scores [B, T, V] of the symbol that follows each position."""
        length = input_ids_BT.shape[1]
        if length > self.block_size:
            raise ConfigError(f"A sequence of {length} symbols is longer than the {self.block_size} this model reads.")
        places_T = torch.arange(length, device=input_ids_BT.device)
        x_BTW = self.dropout(self.symbol(input_ids_BT) + self.position(places_T))
        for block in self.blocks:
            x_BTW = block(x_BTW)
        return self.scores(self.norm(x_BTW))

    @torch.no_grad()
    def continuation(
        self,
        input_ids_BT: Tensor,
        length: int,
        *,
        generator: torch.Generator,
        temperature: float = 1.0,
        top_k: int | None = None,
    ) -> Iterator[Tensor]:
        """Yield the next symbols [B, 1] one after the other, each drawn by its probability.

        Args:
            input_ids_BT: What is continued; the last ``block_size`` symbols are read.
            length: How many symbols to draw.
            generator: What they are drawn with.
            temperature: Below 1 the likely ones are drawn more often; at 0 always the likeliest.
            top_k: Draw from so many of the likeliest alone.
        """
        for _ in range(length):
            scores_BV = self(input_ids_BT[:, -self.block_size :])[:, -1]
            drawn_B1 = _drawn(scores_BV, generator, temperature, top_k)
            yield drawn_B1
            input_ids_BT = torch.cat([input_ids_BT[:, -self.block_size :], drawn_B1], dim=1)

    def continue_text(
        self,
        input_ids_BT: Tensor,
        length: int,
        *,
        generator: torch.Generator,
        temperature: float = 1.0,
        top_k: int | None = None,
    ) -> Tensor:
        """Return the sequences with ``length`` more symbols; see ``continuation``."""
        found = self.continuation(input_ids_BT, length, generator=generator, temperature=temperature, top_k=top_k)
        return torch.cat([input_ids_BT, *found], dim=1)


def _drawn(scores_BV: Tensor, generator: torch.Generator, temperature: float, top_k: int | None) -> Tensor:
    if temperature == 0:
        return scores_BV.argmax(dim=-1, keepdim=True)
    if top_k is not None and top_k < scores_BV.shape[-1]:
        least_B1 = scores_BV.topk(top_k, dim=-1).values[:, -1:]
        scores_BV = scores_BV.masked_fill(scores_BV < least_B1, -math.inf)
    return torch.multinomial(functional.softmax(scores_BV / temperature, dim=-1), 1, generator=generator)


class _Block(nn.Module):
    """Attention, then a feed-forward layer; each adds to what it reads."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = _Attention(width, heads, dropout)
        self.feed = _Feed(width, dropout)

    def forward(self, x_BTW: Tensor) -> Tensor:
        """Add what the other positions and the layer have to say."""
        x_BTW = x_BTW + self.attention(self.attention_norm(x_BTW))
        return x_BTW + self.feed(self.feed_norm(x_BTW))


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.rate = dropout
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.back = nn.Linear(width, width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BTW: Tensor) -> Tensor:
        """Let each position read those before it."""
        batch, length, width = x_BTW.shape
        shape = batch, length, 3, self.heads, width // self.heads
        query, key, value = self.queries_keys_values(x_BTW).view(shape).permute(2, 0, 3, 1, 4)
        rate = self.rate if self.training else 0.0
        read = functional.scaled_dot_product_attention(query, key, value, dropout_p=rate, is_causal=True)
        return self.dropout(self.back(read.transpose(1, 2).reshape(batch, length, width)))


class _Feed(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.out = nn.Linear(width, 4 * width, bias=False)
        self.back = nn.Linear(4 * width, width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BTW: Tensor) -> Tensor:
        """Let each position think for itself."""
        return self.dropout(self.back(functional.gelu(self.out(x_BTW))))


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
