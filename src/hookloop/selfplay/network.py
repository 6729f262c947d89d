"""A small residual network for boards, with squeeze and excitation, and heads for moves and values.

Axes: B positions, C channels, H rows, W columns, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from hookloop.errors import ConfigError
from hookloop.rl.policies.initial import POLICY_GAIN, VALUE_GAIN, begin_orthogonal, convolution, linear
from hookloop.selfplay.turning import Symmetry, Turning

POLICY_CHANNELS = 8
VALUE_CHANNELS = 4
VALUE_WIDTH = 64
EVEN_GAIN = 0.01  # a game of which nothing is known is even
LEAK = 0.1
SQUEEZE = 4  # channels per unit between the two layers of an excitation


class MovePlanes(NamedTuple):
    """How actions lie on the board: first those of each square they leave, then planes of squares they go to."""

    per_origin: int
    """Actions for each square that a piece may leave; they come first, square by square."""
    per_target: int
    """Planes of squares to put a piece on; they come second, plane by plane."""
    others: int
    """Actions that belong to no square, such as passing; they come last."""
    ways: int = 0
    """In how many ways a piece goes from one square to another, such as promoted or not; the actions of an origin are
    then those of each target, way by way. 0 where they are something else."""


def move_planes(game: str, num_actions: int, squares: int) -> MovePlanes | None:
    """Return how a game's actions lie on its board; None if that is not known, or they do not."""
    if game == "shogi":  # from 81 squares to 81, promoted or not; and drops of 7 kinds of pieces
        return MovePlanes(per_origin=162, per_target=7, others=0, ways=2)
    if num_actions in (squares, squares + 1):  # a stone on a square; the one besides is to pass
        return MovePlanes(per_origin=0, per_target=1, others=num_actions - squares)
    return None


class BoardNetwork(nn.Module):
    """Looks at planes [B, C, H, W] and returns action parameters [B, A] and values [B] between -1 and 1.

    There is no normalisation over the batch: what acts in a batch of games must think the same of a position as what
    learns in a minibatch, or the probability ratios of PPO would not begin at 1. Each block begins as the identity
    instead, so that deep networks train from the first update.

    Args:
        shape: C, H and W of an observation.
        num_actions: A.
        planes: How actions lie on the board; None for a linear head.
        symmetry: How the board is turned, to be seen by who moves; None to see it as it lies.
        blocks: Residual blocks.
        channels: Their width.
        generator: The first weights are drawn from it, and from nowhere else.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        num_actions: int,
        *,
        planes: MovePlanes | None = None,
        symmetry: Symmetry | None = None,
        blocks: int = 3,
        channels: int = 32,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if len(shape) != 3:
            raise ConfigError(f"A network for boards takes planes [C, H, W], got observations of shape {shape}.")
        num_planes, rows, columns = shape
        assert symmetry is None or not symmetry.is_absolute or (planes is not None and planes.ways)
        self.turning = None if symmetry is None else Turning(symmetry, shape)
        self.stem = convolution(num_planes, channels, 3, generator, padding=1)
        self.blocks = nn.ModuleList(Block(channels, generator) for _ in range(blocks))
        self.policy: nn.Module
        if planes is None:
            self.policy = LinearMoves(channels, rows * columns, num_actions, generator)
        else:
            self.policy = PlanarMoves(channels, planes, generator)
        self.value_planes = convolution(channels, VALUE_CHANNELS, 1, generator)
        self.value_hidden = linear(VALUE_CHANNELS * rows * columns, VALUE_WIDTH, 2**0.5, generator)
        self.value = linear(VALUE_WIDTH, 1, EVEN_GAIN, generator)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return action parameters and values."""
        is_turned = None
        if self.turning is not None:
            obs, is_turned = self.turning(obs)
        seen = functional.relu(self.stem(obs))
        for block in self.blocks:
            seen = block(seen)
        # Leaking: hundreds of moves without a result would teach plain rectifiers to be silent for good.
        hidden = functional.leaky_relu(self.value_planes(seen), LEAK).flatten(1)
        hidden = functional.leaky_relu(self.value_hidden(hidden), LEAK)
        values = self.value(hidden).tanh().squeeze(1)
        if self.turning is not None and self.turning.is_absolute:
            return self.policy(seen, is_turned), values
        return self.policy(seen), values


class WindowNetwork(nn.Module):
    """Looks at every window of a board with the same weights, then at all of them together.

    For games won by stones in a row: a row fits into a window, so it has to be learned once, and not anew wherever it
    may lie. Values are between -1 and 1.

    Args:
        shape: C, H and W of an observation.
        num_actions: A.
        window: The side of a window, in squares.
        channels: Features of each window.
        hidden: Widths of the layers over all windows.
        generator: The first weights are drawn from it, and from nowhere else.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        num_actions: int,
        *,
        window: int,
        channels: int,
        hidden: Sequence[int],
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if len(shape) != 3 or window > min(shape[1:]):
            raise ConfigError(
                f"Windows of {window} x {window} squares take planes [C, H, W] of at least that size, got observations "
                f"of shape {shape}; set network.window, or network.kind=layers."
            )
        num_planes, rows, columns = shape
        self.window = window
        num_windows = (rows - window + 1) * (columns - window + 1)
        self.stem = linear(num_planes * window * window, channels, 2**0.5, generator)
        widths = (num_windows * channels, *hidden)
        self.layers = nn.ModuleList(linear(one, other, 2**0.5, generator) for one, other in pairwise(widths))
        self.policy = linear(widths[-1], num_actions, POLICY_GAIN, generator)
        self.value = linear(widths[-1], 1, VALUE_GAIN, generator)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return action parameters and values."""
        # A product of matrices: on boards this small a convolution takes several times as long.
        windows = obs.unfold(2, self.window, 1).unfold(3, self.window, 1)
        windows = windows.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        seen = functional.relu(self.stem(windows)).flatten(1)
        for layer in self.layers:
            seen = functional.relu(layer(seen))
        return self.policy(seen), self.value(seen).tanh().squeeze(1)


class Block(nn.Module):
    """Two convolutions, weighed channel by channel by what is on the whole board, added to what came in."""

    def __init__(self, channels: int, generator: torch.Generator | None) -> None:
        super().__init__()
        width = max(1, channels // SQUEEZE)
        self.first = convolution(channels, channels, 3, generator, padding=1)
        self.second = convolution(channels, channels, 3, generator, padding=1)
        nn.init.zeros_(self.second.weight)
        self.squeeze = linear(channels, width, 2**0.5, generator)
        self.excite = linear(width, channels, 1.0, generator)

    def forward(self, seen: Tensor) -> Tensor:
        """Return planes of the same shape."""
        change = self.second(functional.relu(self.first(seen)))
        weights = self.excite(functional.relu(self.squeeze(change.mean(dim=(2, 3))))).sigmoid()
        return functional.relu(seen + change * weights[:, :, None, None])


class LinearMoves(nn.Module):
    """Weighs every action by everything on the board: for a few actions, or those that lie nowhere."""

    def __init__(self, channels: int, squares: int, num_actions: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.planes = convolution(channels, POLICY_CHANNELS, 1, generator)
        self.actions = linear(POLICY_CHANNELS * squares, num_actions, POLICY_GAIN, generator)

    def forward(self, seen: Tensor) -> Tensor:
        """Return action parameters."""
        return self.actions(functional.relu(self.planes(seen)).flatten(1))


class PlanarMoves(nn.Module):
    """Weighs actions where they are made: one convolution, whose weights all squares share.

    Where actions go from a square to a square, what is seen of both is compared as well. What stands on the target is
    then known to every move that leads there, and need not be learned anew for each square it may come from.
    """

    def __init__(self, channels: int, planes: MovePlanes, generator: torch.Generator | None) -> None:
        super().__init__()
        self.layout = planes
        self.mixing = convolution(channels, channels, 1, generator)
        self.planes = convolution(channels, planes.per_origin + planes.per_target, 1, generator)
        begin_orthogonal(self.planes.weight, POLICY_GAIN, generator)
        self.others = linear(channels, planes.others, POLICY_GAIN, generator) if planes.others else None
        self.pairs = Pairs(channels, planes.ways, generator) if planes.ways else None

    def forward(self, seen: Tensor, is_turned: Tensor | None = None) -> Tensor:
        """Return action parameters.

        Args:
            seen: What is seen of the boards.
            is_turned: Which of them [B] are seen after half a turn, while their actions are those of the board as it
                lies; None if none is.
        """
        per_origin, weight, bias = self.layout.per_origin, self.planes.weight, self.planes.bias
        assert bias is not None
        board = functional.relu(self.mixing(seen))
        if is_turned is not None:
            board = torch.where(is_turned[:, None, None, None], board.flip((2, 3)), board)
        parts: list[Tensor] = []
        if per_origin:
            squares = board.flatten(2).transpose(1, 2)
            leaving = self._leaving(squares, weight[:per_origin].flatten(1), bias[:per_origin], is_turned)
            parts.append((leaving if self.pairs is None else self.pairs(squares, leaving)).flatten(1))
        parts.append(functional.conv2d(board, weight[per_origin:], bias[per_origin:]).flatten(1))
        if self.others is not None:
            parts.append(self.others(board.mean(dim=(2, 3))))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _leaving(self, squares: Tensor, weight: Tensor, bias: Tensor, is_turned: Tensor | None) -> Tensor:
        """Return the convolution over origins as a product, whose result lies square by square at once."""
        if is_turned is None:
            return functional.linear(squares, weight, bias)
        # Weights belong to targets as who moves sees them: half a turn counts those from the other end. To turn the
        # few weights is cheaper than to turn the many results.
        sides = is_turned.long()
        weights = torch.stack((weight, _from_the_end(weight, self.layout.ways))).index_select(0, sides)
        biases = torch.stack((bias, _from_the_end(bias, self.layout.ways))).index_select(0, sides)
        return torch.baddbmm(biases[:, None], squares, weights.transpose(1, 2))


class Pairs(nn.Module):
    """Compares every square with every other, in so many ways; S squares."""

    def __init__(self, channels: int, ways: int, generator: torch.Generator | None) -> None:
        super().__init__()
        self.origins = linear(channels, channels, POLICY_GAIN, generator)
        self.targets = linear(channels, ways * channels, 1.0, generator)

    def forward(self, squares: Tensor, besides: Tensor) -> Tensor:
        """Return ``besides`` [B, S, S * ways], with what is seen of origin [B, S, C] and target added."""
        channels = squares.shape[2]
        targets = self.targets(squares).view(len(squares), -1, channels)
        return torch.baddbmm(besides, self.origins(squares), targets.transpose(1, 2), alpha=channels**-0.5)


def _from_the_end(weight: Tensor, ways: int) -> Tensor:
    """Return weights [targets * ways, ...] with the targets in reverse order."""
    return weight.unflatten(0, (-1, ways)).flip(0).flatten(0, 1)
