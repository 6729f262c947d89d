"""How weights begin: orthogonal, so that the first updates neither vanish nor explode, with biases of zero."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

HIDDEN_GAIN = math.sqrt(2)
POLICY_GAIN = 0.01  # nearly equal chances for all actions at first, so that the first experience is broad
VALUE_GAIN = 1.0


def linear(num_inputs: int, num_outputs: int, gain: float, generator: torch.Generator | None) -> nn.Linear:
    """Make an orthogonal linear layer; no random number is drawn but from the generator."""
    layer = nn.Linear(num_inputs, num_outputs, device="meta")
    _begin(layer, gain, generator)
    return layer


def convolution(
    num_inputs: int,
    num_outputs: int,
    side: int,
    generator: torch.Generator | None,
    *,
    stride: int = 1,
    padding: int = 0,
) -> nn.Conv2d:
    """Make an orthogonal convolution over squares; no random number is drawn but from the generator."""
    layer = nn.Conv2d(num_inputs, num_outputs, side, stride, padding, device="meta")
    _begin(layer, HIDDEN_GAIN, generator)
    return layer


def embedding(num_values: int, width: int, generator: torch.Generator | None) -> nn.Embedding:
    """Make an embedding of normally distributed vectors; no random number is drawn but from the generator."""
    return nn.Embedding(num_values, width, _weight=torch.randn(num_values, width, generator=generator))


def begin_orthogonal(weight: Tensor, gain: float, generator: torch.Generator | None) -> None:
    """Make a weight [out, ...] orthogonal, in place."""
    with torch.no_grad():
        nn.init.orthogonal_(weight, gain, generator=generator)


def _begin(layer: nn.Linear | nn.Conv2d, gain: float, generator: torch.Generator | None) -> None:
    # Layers are made without memory first: torch's own first values would be drawn from the global stream, and thrown
    # away. They get their memory here and not by ``to_empty``, which imports sympy for it: 0.4 s at every start.
    layer.weight = nn.Parameter(torch.empty(layer.weight.shape))
    layer.bias = nn.Parameter(torch.zeros(layer.get_parameter("bias").shape))
    begin_orthogonal(layer.weight, gain, generator)
