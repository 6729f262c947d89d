"""Reading a sequence symbol by symbol, with the keys and values of all symbols before kept in memory taken once.

Legend: ``B`` samples, ``T`` positions, ``W`` width, ``H`` heads, ``D`` width of a head, ``V`` symbols.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn import functional

from hookloop.errors import ConfigError
from hookloop.supervised.models.gpt import GPT


class _Layer(NamedTuple):
    attention_norm: tuple[Tensor, Tensor, float]
    queries_keys_values: Tensor
    attention_back: Tensor
    feed_norm: tuple[Tensor, Tensor, float]
    feed_out: Tensor
    feed_back: Tensor
    cache: Tensor
    """Keys and values [2, B, H, T, D]."""


class CachedReader:
    """Reads what follows on what it has read, and says what comes next; equal to the model's forward but for rounding.

    The blocks are written out here, because for one symbol the calls of their modules cost as much as what they
    compute. Weights are those of the model as they are at each call; nothing has a gradient, and there is no dropout.

    Args:
        model: What is read with.
        batch: Sequences read together.
        length: The longest sequence; ``block_size`` by default.
    """

    def __init__(self, model: GPT, batch: int, length: int | None = None) -> None:
        length = model.block_size if length is None else length
        if length > model.block_size:
            raise ConfigError(f"A cache for {length} symbols is longer than the {model.block_size} this model reads.")
        self.length = 0
        """How many symbols of each sequence it has read."""
        self.capacity = length
        self._symbol, self._position = model.symbol.weight.detach(), model.position.weight.detach()
        self._norm = _norm(model.norm)
        self._scores = model.scores.weight.detach().t()
        self._layers: list[_Layer] = []
        width = self._symbol.shape[1]
        for block in cast("Any", model.blocks):
            heads = block.attention.heads
            self._layers.append(
                _Layer(
                    _norm(block.attention_norm),
                    block.attention.queries_keys_values.weight.detach().t(),
                    block.attention.back.weight.detach().t(),
                    _norm(block.feed_norm),
                    block.feed.out.weight.detach().t(),
                    block.feed.back.weight.detach().t(),
                    torch.empty(2, batch, heads, length, width // heads),
                )
            )

    @torch.no_grad()
    def read(self, input_ids_BT: Tensor) -> Tensor:
        """Return the scores [B, V] of what follows: after all first symbols, later after one more of each sequence."""
        batch, count = input_ids_BT.shape
        begin, end = self.length, self.length + count
        if end > self.capacity:
            raise ConfigError(f"A sequence of {end} symbols is longer than the {self.capacity} this cache holds.")
        if begin and count > 1:
            raise ConfigError(f"After the first symbols a cache takes one at a time, got {count}.")
        width = self._symbol.shape[1]
        x = (functional.embedding(input_ids_BT, self._symbol) + self._position[begin:end]).view(-1, width)
        for layer in self._layers:
            _, _, heads, _, head_width = layer.cache.shape
            found = torch.mm(_normed(x, layer.attention_norm), layer.queries_keys_values)
            found = found.view(batch, count, 3, heads, head_width).permute(2, 0, 3, 1, 4)
            layer.cache[:, :, :, begin:end] = found[1:]
            keys, values = layer.cache[:, :, :, :end]
            # A single symbol reads all there are, and a mask of one row would hide them.
            read = functional.scaled_dot_product_attention(found[0], keys, values, is_causal=count > 1)
            x = torch.addmm(x, read.transpose(1, 2).reshape(-1, width), layer.attention_back)
            x = torch.addmm(x, functional.gelu(torch.mm(_normed(x, layer.feed_norm), layer.feed_out)), layer.feed_back)
        self.length = end
        last = x if count == 1 else x.view(batch, count, width)[:, -1]
        return torch.mm(_normed(last, self._norm), self._scores)


def _norm(module: Any) -> tuple[Tensor, Tensor, float]:
    return module.weight.detach(), module.bias.detach(), module.eps


def _normed(x: Tensor, norm: tuple[Tensor, Tensor, float]) -> Tensor:
    weight, bias, eps = norm
    return torch.layer_norm(x, weight.shape, weight, bias, eps)
