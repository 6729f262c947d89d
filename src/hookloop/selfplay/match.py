"""Matches: two players, many games at once, each of them in the first seat of every other game."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hookloop.errors import ConfigError
from hookloop.rl.specs import Array
from hookloop.selfplay.games import EndedGame, GameEnvs
from hookloop.selfplay.players import Player
from hookloop.selfplay.ratings import Score
from hookloop.selfplay.tally import outcome_of


def play_match(
    game: str,
    player: Player,
    opponent: Player,
    *,
    games: int,
    max_moves: int | None = None,
    opening_moves: int = 0,
    seed: int = 0,
    show: Callable[[EndedGame, int], None] | None = None,
) -> Score:
    """Play a match and return how the first of the players did; a game that is cut off is half a point for each.

    Two players who never vary would play the same two games over and over. With ``opening_moves`` each game begins with
    so many moves at random, and is played twice, each of the two once in the first seat.

    Args:
        game: The game's name.
        player: Whose score it is; it has the first seat in games 0, 2, 4 and so on.
        opponent: The other.
        games: How many to play; an even number, so that neither has the first seat more often.
        max_moves: A game is cut off after so many moves.
        opening_moves: How many moves at random each pair of games begins with.
        seed: The root of those moves.
        show: Called with each game of the match as it ends, and the seat that the player had in it.
    """
    if games < 2 or games % 2:
        raise ConfigError(f"A match has an even number of games, so that both seats are shared evenly, got {games}.")
    envs = GameEnvs(game, games, max_moves=max_moves)
    envs.reset(0)
    opening = np.random.default_rng(seed)
    own_seats = np.arange(games) % 2
    is_running = np.ones(games, dtype=bool)
    returns = np.zeros(games)
    moves_made = 0
    while is_running.any():
        if moves_made < opening_moves:
            moves = _opening_moves(envs, opening)
        else:
            moves = _chosen_moves(envs, player, opponent, is_running, envs.seats == own_seats)
        states = envs.states.copy()  # those that end are replaced by new ones
        envs.step(moves)
        moves_made += 1
        for ended in envs.finished:
            row = ended.env_index
            if is_running[row]:
                is_running[row] = False
                returns[row] = ended.return_
                if show is not None:
                    outcome = outcome_of(ended.return_, is_cut_off=bool(envs.truncated[row]))
                    played = max(ended.length - opening_moves, 0)
                    show(EndedGame(states[row], outcome, played), int(own_seats[row]))
    own_returns = np.where(own_seats == 0, returns, -returns)
    wins, losses = int(np.count_nonzero(own_returns > 0)), int(np.count_nonzero(own_returns < 0))
    return Score(wins, games - wins - losses, losses)


def _chosen_moves(envs: GameEnvs, player: Player, opponent: Player, is_running: Array, is_own: Array) -> Array:
    # Games that are over begin anew, as environments do; any legal move will do in them.
    moves = envs.masks.argmax(axis=1)
    for who, rows in ((player, is_running & is_own), (opponent, is_running & ~is_own)):
        chosen = np.flatnonzero(rows)
        if chosen.size:
            moves[chosen] = who.choose(envs, chosen)
    return moves


def _opening_moves(envs: GameEnvs, random: np.random.Generator) -> Array:
    """Draw a legal move for each pair of games, which stand alike."""
    weights = np.repeat(random.random((envs.num_envs // 2, envs.num_moves)), 2, axis=0)
    return (weights * envs.masks).argmax(axis=1)
