"""Encoders: from observations of any kind to one vector of features per row.

An encoder is a module with ``num_features`` whose ``forward`` takes a batch [B, ...] and returns [B, num_features].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError
from hookloop.rl.policies.initial import HIDDEN_GAIN, convolution, embedding, linear
from hookloop.rl.policies.mlp import check_layers
from hookloop.rl.policies.stacked import Activation
from hookloop.rl.specs import ArraySpec, ObservationSpec

Channels = Literal["first", "last", "auto"]

SMALLEST_FRAME = 36  # what the strides of the large convolutions need
SMALLEST_PICTURE = 28
WIDEST_CODE = 16


class Encoder(nn.Module):
    """A module that turns a batch of observations into features [B, num_features]."""

    num_features: int


class VectorEncoder(Encoder):
    """Linear layers over an array of any shape, flattened."""

    def __init__(
        self,
        spec: ArraySpec,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: Activation = "tanh",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_layers(hidden, activation)
        widths = (max(spec.size, 1), *hidden)
        layers = [linear(before, after, HIDDEN_GAIN, generator) for before, after in pairwise(widths)]
        self.layers = nn.Sequential(*(part for layer in layers for part in (layer, activation_module(activation))))
        self.num_features = hidden[-1]

    def forward(self, obs: Tensor) -> Tensor:
        """Return features [B, F]."""
        return self.layers(obs.reshape(obs.shape[0], -1).to(next(self.layers.parameters()).dtype))


class ImageEncoder(Encoder):
    """Convolutions over frames or small grids, in either order of the axes.

    Frames of at least 36 x 36 go through the three layers of Mnih et al. (2015), anything smaller through 3 x 3
    convolutions with padding, which lose no cell.

    Args:
        spec: An array of shape [C, H, W], [H, W, C] or [H, W].
        num_features: The width of the last layer; 512 for frames and 128 for grids by default.
        channels: Where the axis of channels is; ``auto`` takes the last one if it is shorter than the first.
        scale: What the entries are multiplied with. By default uint8 is brightness from 28 x 28 on, scaled to [0, 1];
            in a smaller grid it is codes, which stay as they are.
        generator: The random stream of the first weights.
    """

    def __init__(
        self,
        spec: ArraySpec,
        *,
        num_features: int | None = None,
        channels: Channels = "auto",
        scale: float | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if len(spec.shape) not in (2, 3):
            raise ConfigError(
                f"An image has the shape [C, H, W], [H, W, C] or [H, W], got {list(spec.shape)}; "
                "use a VectorEncoder for anything else."
            )
        self._has_channels = len(spec.shape) == 3
        self._is_last = self._has_channels and _has_last_channels(spec.shape, channels)
        depth, height, width = _as_first(spec.shape, self._is_last)
        is_frame = min(height, width) >= SMALLEST_FRAME
        is_brightness = spec.dtype == "uint8" and min(height, width) >= SMALLEST_PICTURE
        self._scale = scale if scale is not None else 1 / 255 if is_brightness else 1.0
        self.num_features = num_features or (512 if is_frame else 128)
        if is_frame:
            convolutions = _frame_layers(depth, generator)
        else:
            convolutions = _grid_layers(depth, max(height, width), generator)
        with torch.no_grad():
            probe = nn.Sequential(*convolutions)(torch.zeros(1, depth, height, width))
        self.layers = nn.Sequential(*(part for layer in convolutions for part in (layer, nn.ReLU(inplace=True))))
        self.last = linear(probe.numel(), self.num_features, HIDDEN_GAIN, generator)
        self.activate = nn.ReLU(inplace=True)

    def forward(self, obs: Tensor) -> Tensor:
        """Return features [B, F]."""
        if not self._has_channels:
            obs = obs.unsqueeze(1)
        elif self._is_last:
            obs = obs.permute(0, 3, 1, 2)
        image = obs.to(self.last.weight.dtype)
        return self.activate(self.last(self.layers(image if self._scale == 1 else image * self._scale).flatten(1)))


class CodeEncoder(Encoder):
    """A learned vector for each value of whole numbers in a small range."""

    def __init__(self, spec: ArraySpec, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if spec.num_values is None:
            raise ConfigError(f"{spec} does not say how many values its entries have; set num_values.")
        self.codes = embedding(spec.num_values, min(spec.num_values, WIDEST_CODE), generator)
        self.num_features = max(spec.size, 1) * self.codes.embedding_dim

    def forward(self, obs: Tensor) -> Tensor:
        """Return features [B, F]."""
        return self.codes(obs.reshape(obs.shape[0], -1).to(torch.int64)).flatten(1)


class DictEncoder(Encoder):
    """One encoder per entry of a dict of observations, joined by a linear layer.

    Args:
        observation_spec: The entries; vectors, images and codes each get the encoder that fits.
        hidden: The widths of the layers over vectors; the last one is the number of features in all.
        activation: What stands between those layers.
        generator: The random stream of the first weights.
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: Activation = "tanh",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.keys = tuple(observation_spec.arrays)
        parts = [
            array_encoder(spec, hidden=hidden, activation=activation, generator=generator)
            for spec in observation_spec.arrays.values()
        ]
        self.parts = nn.ModuleDict({_module_name(key): part for key, part in zip(self.keys, parts, strict=True)})
        self.join = linear(sum(part.num_features for part in parts), hidden[-1], HIDDEN_GAIN, generator)
        self.activate = activation_module(activation)
        self.num_features = hidden[-1]

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return features [B, F]."""
        features = [part(obs[key]) for key, part in zip(self.keys, self.parts.values(), strict=True)]
        return self.activate(self.join(torch.cat(features, 1)))


def observation_encoder(
    observation_spec: ObservationSpec,
    *,
    hidden: Sequence[int] = (64, 64),
    activation: Activation = "tanh",
    generator: torch.Generator | None = None,
) -> Encoder:
    """Make the encoder that fits an observation."""
    if observation_spec.is_dict:
        return DictEncoder(observation_spec, hidden=hidden, activation=activation, generator=generator)
    return array_encoder(observation_spec.array, hidden=hidden, activation=activation, generator=generator)


def array_encoder(
    spec: ArraySpec, *, hidden: Sequence[int], activation: Activation, generator: torch.Generator | None
) -> Encoder:
    """Make the encoder that fits one array."""
    if is_code(spec):
        return CodeEncoder(spec, generator=generator)
    if is_image(spec):
        return ImageEncoder(spec, generator=generator)
    return VectorEncoder(spec, hidden=hidden, activation=activation, generator=generator)


def is_code(spec: ArraySpec) -> bool:
    """Tell whether an array holds whole numbers that name something."""
    return spec.num_values is not None and len(spec.shape) <= 1


def is_image(spec: ArraySpec) -> bool:
    """Tell whether neighbours in an array belong together: frames, and grids with channels."""
    if len(spec.shape) == 3:
        return True
    return len(spec.shape) == 2 and spec.dtype == "uint8" and min(spec.shape) >= SMALLEST_FRAME


def activation_module(activation: Activation) -> nn.Module:
    """Make the module of an activation."""
    return nn.Tanh() if activation == "tanh" else nn.ReLU()


def _has_last_channels(shape: tuple[int, ...], channels: Channels) -> bool:
    return shape[-1] < shape[0] if channels == "auto" else channels == "last"


def _as_first(shape: tuple[int, ...], is_last: bool) -> tuple[int, int, int]:
    if len(shape) == 2:
        return 1, shape[0], shape[1]
    return (shape[2], shape[0], shape[1]) if is_last else (shape[0], shape[1], shape[2])


def _frame_layers(depth: int, generator: torch.Generator | None) -> list[nn.Conv2d]:
    return [
        convolution(depth, 32, 8, generator, stride=4),
        convolution(32, 64, 4, generator, stride=2),
        convolution(64, 64, 3, generator),
    ]


def _grid_layers(depth: int, side: int, generator: torch.Generator | None) -> list[nn.Conv2d]:
    # A stride only where the last layer would otherwise be larger than all the rest.
    stride = max(1, math.ceil(side / 12))
    return [
        convolution(depth, 32, 3, generator, padding=1),
        convolution(32, 64, 3, generator, stride=stride, padding=1),
    ]


def _module_name(key: str) -> str:
    # A module's name has no dots, and may not be that of a method such as "keys".
    return f"obs_{key.replace('.', '_')}"
