"""What a transformer remembers of the positions it has read: their keys and values, in memory taken once.

Legend: ``B`` samples, ``H`` heads, ``T`` positions, ``D`` width of a head.
"""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValueCache:
    """Keys and values of all layers, for sequences up to a length; ``length`` positions of it have been read.

    Args:
        layers: Blocks of the model.
        batch: Sequences read together.
        heads: Heads of attention.
        length: The longest sequence.
        head_width: Numbers of a head.
    """

    def __init__(self, layers: int, batch: int, heads: int, length: int, head_width: int) -> None:
        self.length = 0
        self.capacity = length
        self._keys = [torch.empty(batch, heads, length, head_width) for _ in range(layers)]
        self._values = [torch.empty(batch, heads, length, head_width) for _ in range(layers)]

    def clear(self) -> None:
        """Forget everything; the memory is used again."""
        self.length = 0

    def extend(self, layer: int, keys_BHTD: Tensor, values_BHTD: Tensor) -> tuple[Tensor, Tensor]:
        """Take in what one layer found at the next positions; return what it knows of all positions so far."""
        end = self.length + keys_BHTD.shape[2]
        keys, values = self._keys[layer], self._values[layer]
        keys[:, :, self.length : end] = keys_BHTD
        values[:, :, self.length : end] = values_BHTD
        return keys[:, :, :end], values[:, :, :end]
