"""Games out of OpenSpiel: found by name, and refused if two players cannot learn them by playing themselves."""

from __future__ import annotations

from types import ModuleType
from typing import Any, cast

from hookloop.errors import ConfigError, MissingExtraError
from hookloop.selfplay.errors import UnfitGameError, UnknownGameError

Game = Any
"""A ``pyspiel.Game``; the library has no types of its own."""

State = Any
"""A ``pyspiel.State``: a position and how it came about."""


def load_game(name: str) -> Game:
    """Load a game by its name, with arguments if need be: ``"hex(board_size=5)"``."""
    pyspiel = _import_pyspiel()
    known = pyspiel.registered_names()
    if name.partition("(")[0] not in known:
        raise UnknownGameError(name, known)
    try:
        game = pyspiel.load_game(name)
    except pyspiel.SpielError as error:
        raise ConfigError(f"OpenSpiel does not take the game {name!r}: {error}") from error
    _require_fit(game, name, pyspiel)
    return game


def fitting_games() -> list[str]:
    """Return the names of the games that can be played here, as they are without arguments."""
    pyspiel = _import_pyspiel()
    types = [kind for kind in pyspiel.registered_games() if kind.default_loadable]
    return sorted(kind.short_name for kind in types if not _flaws(kind, pyspiel) and kind.max_num_players == 2)


def _require_fit(game: Game, name: str, pyspiel: ModuleType) -> None:
    flaws = _flaws(game.get_type(), pyspiel)
    if game.num_players() != 2:
        flaws.append(f"{game.num_players()} players")
    if flaws:
        raise UnfitGameError(
            f"The game {name!r} has {' and '.join(flaws)}. Self-play takes games of two players who move in turn, see "
            "everything, leave nothing to chance, and of whom one loses what the other wins; "
            "hookloop.selfplay.fitting_games() lists them."
        )


def _flaws(kind: Any, pyspiel: ModuleType) -> list[str]:
    """Return, in words, what keeps a kind of game from being played here."""
    kinds = pyspiel.GameType
    fits = {
        "moves that are not made in turn": kind.dynamics == kinds.Dynamics.SEQUENTIAL,
        "chance": kind.chance_mode == kinds.ChanceMode.DETERMINISTIC,
        "secrets (imperfect information)": kind.information == kinds.Information.PERFECT_INFORMATION,
        "gains that are not the other's losses": kind.utility == kinds.Utility.ZERO_SUM,
        "no observation as numbers": kind.provides_observation_tensor,
    }
    return [flaw for flaw, is_fit in fits.items() if not is_fit]


def _import_pyspiel() -> ModuleType:
    try:
        import pyspiel  # type: ignore[import-not-found]  # an extra, and compiled: it has no types
    except ModuleNotFoundError as error:
        raise MissingExtraError("self-play", "games") from error
    return cast("ModuleType", pyspiel)
