"""Players that never change, and matches between them."""

from __future__ import annotations

import numpy as np
import pytest

from hookloop.errors import ConfigError

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.rl.policies import MlpActorCritic
from hookloop.selfplay.build import build_policy
from hookloop.selfplay.config import NetworkConfig
from hookloop.selfplay.games import EndedGame, GameEnvs
from hookloop.selfplay.match import play_match
from hookloop.selfplay.players import NetworkPlayer, RandomPlayer, SearchPlayer, make_opponent


def position(*moves: int) -> GameEnvs:
    games = GameEnvs("tic_tac_toe", 1)
    games.reset(0)
    for move in moves:
        games.step(np.array([move]))
    return games


def test_a_greedy_player_wins_where_it_can() -> None:
    games = position(0, 3, 1, 4)

    assert SearchPlayer(1).choose(games, np.array([0])).tolist() == [2]


def test_two_moves_ahead_a_player_sees_what_threatens() -> None:
    games = position(0, 4, 1)  # the first seat threatens 2

    assert all(SearchPlayer(2, seed).choose(games, np.array([0])).tolist() == [2] for seed in range(5))
    assert len({int(SearchPlayer(1, seed).choose(games, np.array([0]))[0]) for seed in range(20)}) > 1


def test_perfect_players_of_tic_tac_toe_draw() -> None:
    score = play_match("tic_tac_toe", SearchPlayer(9), SearchPlayer(9, seed=1), games=4)

    assert (score.wins, score.draws, score.losses) == (0, 4, 0)


def test_deeper_search_is_stronger() -> None:
    greedy = play_match("connect_four", make_opponent("greedy"), make_opponent("random", 1), games=60)
    deeper = play_match("connect_four", make_opponent("search-2"), make_opponent("greedy", 1), games=60)

    assert greedy.games == deeper.games == 60
    assert greedy.mean > 0.6
    assert deeper.mean > 0.6


def test_a_match_is_the_same_each_time() -> None:
    scores = [play_match("tic_tac_toe", RandomPlayer(3), SearchPlayer(1, 4), games=30) for _ in range(2)]

    assert scores[0] == scores[1]
    assert scores[0].mean < 0.5


def test_games_that_are_cut_off_are_half_a_point() -> None:
    score = play_match("connect_four", RandomPlayer(), RandomPlayer(1), games=4, max_moves=5)

    assert (score.draws, score.mean) == (4, 0.5)


def test_a_network_plays_legal_moves_in_both_seats() -> None:
    policy = build_policy(NetworkConfig(blocks=1, channels=4), position())

    score = play_match("tic_tac_toe", NetworkPlayer(policy), RandomPlayer(), games=10)

    assert score.games == 10


@pytest.mark.parametrize("name", ["perfect", "search", "search-x"])
def test_an_unknown_opponent_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="There is no opponent"):
        make_opponent(name)


def test_an_odd_number_of_games_is_refused() -> None:
    with pytest.raises(ConfigError, match="an even number of games"):
        play_match("tic_tac_toe", RandomPlayer(), RandomPlayer(), games=3)


def test_plain_layers_are_plain_on_a_board_too() -> None:
    policy = build_policy(NetworkConfig(kind="layers", hidden=(8,)), position())

    assert isinstance(policy.network, MlpActorCritic)


class FirstMove:
    """Makes the first legal move, and remembers the positions."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, ...]] = set()

    def choose(self, games: GameEnvs, rows: np.ndarray) -> np.ndarray:
        self.seen |= {tuple(games.states[row].history()) for row in rows.tolist()}
        return games.masks[rows].argmax(axis=1)


def test_openings_are_played_once_from_each_seat() -> None:
    one, other = FirstMove(), FirstMove()
    score = play_match("connect_four", one, other, games=40, opening_moves=2, seed=3)

    openings = {history[:2] for history in one.seen}
    assert len(openings) > 5, "two who never vary play many games"
    assert all(len(history) >= 2 for history in one.seen | other.seen)
    assert openings == {history[:2] for history in other.seen}
    assert score.wins == score.losses, "who plays alike from both seats scores alike"
    assert score == play_match("connect_four", FirstMove(), FirstMove(), games=40, opening_moves=2, seed=3)


def test_every_game_of_a_match_is_shown_once_as_it_ended() -> None:
    shown: list[tuple[EndedGame, int]] = []

    score = play_match(
        "tic_tac_toe", RandomPlayer(1), RandomPlayer(2), games=20, opening_moves=2,
        show=lambda game, seat: shown.append((game, seat)),
    )  # fmt: skip

    own = [game.state.returns()[seat] for game, seat in shown]
    assert (own.count(1.0), own.count(0.0), own.count(-1.0)) == (score.wins, score.draws, score.losses)
    assert [seat for _, seat in shown].count(0) == 10
    assert all(game.state.is_terminal() for game, _ in shown)
    assert all(game.played == len(game.state.history()) - 2 for game, _ in shown)
    assert all((game.outcome == "draw") == (game.state.returns()[0] == 0) for game, _ in shown)


def test_a_game_that_is_cut_off_is_shown_as_one() -> None:
    shown: list[EndedGame] = []

    play_match(
        "connect_four", RandomPlayer(1), RandomPlayer(2), games=2, max_moves=5, show=lambda game, _: shown.append(game)
    )

    assert [(game.outcome, len(game.state.history())) for game in shown] == [("cut_off", 5)] * 2
