"""The mistakes one can make with games.

::

    HookloopError
    ├── UnknownGameError (LookupError)    no game goes by that name
    └── UnfitGameError (ValueError)       a game that two players cannot learn by playing themselves
"""

from __future__ import annotations

from collections.abc import Iterable

from hookloop.errors import HookloopError, did_you_mean


class UnknownGameError(HookloopError, LookupError):
    """No game goes by this name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        near = did_you_mean(name, known)
        # Without a near miss the hint lists every name there is, and there are more than a hundred games.
        hint = near if near.startswith(" Did you mean") else ""
        super().__init__(
            f"There is no game {name!r} in OpenSpiel.{hint} List all with hookloop.selfplay.fitting_games()."
        )


class UnfitGameError(HookloopError, ValueError):
    """A game has chance, secrets, simultaneous moves or another number of players than two."""
