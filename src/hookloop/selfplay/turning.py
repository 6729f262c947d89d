"""Positions as seen by who moves: the board is turned and the pieces exchanged when it is the second seat.

Axes: B positions, C planes or channels, H rows, W columns, A actions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError


class Symmetry(NamedTuple):
    """How a game shows a position and its twin, in which the seats have changed places."""

    exchanged: tuple[tuple[int, int], ...]
    """Planes that show the same thing of one seat and of the other."""
    seats: tuple[int, ...]
    """Planes that tell who moves, besides the last one, which always does."""
    axes: tuple[int, ...]
    """Along which axes of [B, C, H, W] the board is turned: the rows, or both, which is half a turn."""
    is_absolute: bool
    """Whether actions name squares of the board as it lies, and not as who moves sees it."""


_SYMMETRIES = {
    # Pieces of 14 kinds, by turns the second seat's and the first's; 28 empty, 29 repetitions, 30 who moves; then 7
    # kinds in the second seat's hand, and in the first's.
    "shogi": Symmetry(
        exchanged=(
            *((kind, kind + 1) for kind in range(0, 28, 2)),
            *((kind, kind + 7) for kind in range(31, 38)),
        ),
        seats=(30,),
        axes=(2, 3),
        is_absolute=True,
    ),
    # Pieces of 6 kinds, by turns White's and Black's; 12 empty, 13 repetitions, 14 who moves, 15 quiet moves; then
    # White's and Black's rights to castle. Moves of Black are already told as if White made them.
    "chess": Symmetry(
        exchanged=(*((kind, kind + 1) for kind in range(0, 12, 2)), (16, 18), (17, 19)),
        seats=(14,),
        axes=(2,),
        is_absolute=False,
    ),
}


def symmetry_of(game: str) -> Symmetry:
    """Return the symmetry of a game, given its short name."""
    if game not in _SYMMETRIES:
        raise ConfigError(
            f"How a position of {game} looks to the other seat is not known, only that of {' and '.join(_SYMMETRIES)}; "
            "set network.from_mover=false."
        )
    return _SYMMETRIES[game]


class Turning(nn.Module):
    """Shows every position as if the first seat moved: it has no weights, and chooses by the position alone.

    Args:
        symmetry: What is exchanged, and how the board is turned.
        shape: C, H and W of an observation.
    """

    seats: Tensor
    places: Tensor

    def __init__(self, symmetry: Symmetry, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.is_absolute = symmetry.is_absolute
        planes = list(range(shape[0]))
        for one, other in symmetry.exchanged:
            planes[one], planes[other] = other, one
        places = torch.arange(shape[0] * shape[1] * shape[2]).view(1, *shape)
        self.register_buffer("places", places.flip(symmetry.axes)[0, planes].flatten(), persistent=False)
        self.register_buffer("seats", torch.tensor([*symmetry.seats, shape[0] - 1]), persistent=False)

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Return what who moves sees of each position, and whether it was turned [B]."""
        is_turned = obs[:, -1, 0, 0] > 0
        turned = obs.flatten(1).index_select(1, self.places).view_as(obs)
        turned.index_fill_(1, self.seats, 0)
        return torch.where(is_turned[:, None, None, None], turned, obs), is_turned
