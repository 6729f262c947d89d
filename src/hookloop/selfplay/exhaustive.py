"""A small game, played out against every reply there is: whoever loses nowhere cannot be beaten."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hookloop.errors import ConfigError
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.players import Player
from hookloop.selfplay.ratings import Score, score_of

MOST_LINES = 100_000


def play_all_lines(game: str, player: Player, *, max_lines: int = MOST_LINES) -> Score:
    """Play a game in both seats against all moves of the opponent, and count how the lines end.

    The player has to choose the same move whenever it is in the same position, or other lines than its own are played.

    Args:
        game: The game's name.
        player: Whose score it is.
        max_lines: Refuse a game with more lines than these open at once.
    """
    return _lines_of_seat(game, player, 0, max_lines) + _lines_of_seat(game, player, 1, max_lines)


def _lines_of_seat(game: str, player: Player, seat: int, max_lines: int) -> Score:
    score, lines = Score(), [list[int]()]
    while lines:
        if len(lines) > max_lines:
            raise ConfigError(
                f"{game} has more than {max_lines} lines of play; that every reply is tried is for small games."
            )
        envs = _standing(game, lines)
        open_lines: list[list[int]] = []
        for row, move in _next_moves(envs, player, seat):
            state = envs.states[row].child(move)
            if state.is_terminal():
                score += score_of(state.returns()[seat])
            else:
                open_lines.append([*lines[row], move])
        lines = open_lines
    return score


def _standing(game: str, lines: list[list[int]]) -> GameEnvs:
    """Return the positions after these moves, of which all lines have as many."""
    envs = GameEnvs(game, len(lines))
    envs.reset(0)
    for moves in np.array(lines, dtype=np.int64).T:
        envs.step(moves)
    return envs


def _next_moves(envs: GameEnvs, player: Player, seat: int) -> Iterator[tuple[int, int]]:
    """Yield the rows and moves to follow: the player's move where it is its turn, else every legal one."""
    own = np.flatnonzero(envs.seats == seat)
    chosen = player.choose(envs, own).tolist() if own.size else []
    yield from zip(own.tolist(), chosen, strict=True)
    for row in np.flatnonzero(envs.seats != seat).tolist():
        yield from ((row, move) for move in envs.states[row].legal_actions())
