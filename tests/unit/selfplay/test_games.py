"""Games as a batch: seats, masks, ends, and positions that are saved by their moves."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from hookloop.errors import ConfigError
from hookloop.rl.envs.errors import ActionMismatchError, EnvStateError
from hookloop.selfplay.errors import UnfitGameError, UnknownGameError

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.selfplay.games import GameEnvs  # noqa: E402
from hookloop.selfplay.library import fitting_games, load_game  # noqa: E402


def games(name: str = "tic_tac_toe", num_envs: int = 3, **options: int) -> GameEnvs:
    made = GameEnvs(name, num_envs, **options)
    made.reset(0)
    return made


def play(envs: GameEnvs, *moves: int) -> None:
    """Make the same moves in every game."""
    for move in moves:
        envs.step(np.full(envs.num_envs, move))


def random_moves(envs: GameEnvs, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(envs.masks.shape) * envs.masks).argmax(axis=1)


def test_a_win_is_the_movers_and_the_return_is_the_first_seats() -> None:
    envs = games()

    play(envs, 0, 3, 1, 4)
    assert envs.seats.tolist() == [0, 0, 0]
    assert not envs.rewards.any()
    play(envs, 2)  # the first seat completes a row

    assert envs.rewards.tolist() == [1.0] * 3
    assert envs.terminated.all()
    assert [(game.return_, game.length, game.infos["first_win"]) for game in envs.finished] == [(1.0, 5, 1.0)] * 3
    assert (envs.tally.first_wins, envs.tally.games) == (3, 3)


def test_a_win_of_the_second_seat_is_a_reward_for_the_move_and_a_loss_in_the_return() -> None:
    envs = games()

    play(envs, 0, 3, 1, 4, 8, 5)

    assert envs.rewards.tolist() == [1.0] * 3
    assert [game.return_ for game in envs.finished] == [-1.0] * 3
    assert envs.tally.rates() == {"first_wins": 0.0, "second_wins": 1.0, "draws": 0.0, "cut_off": 0.0}


def test_a_draw_is_counted_as_a_draw() -> None:
    envs = games()

    play(envs, 0, 1, 2, 4, 3, 5, 7, 6, 8)

    assert not envs.rewards.any()
    assert envs.terminated.all()
    assert (envs.tally.draws, envs.tally.games) == (3, 3)


def test_a_game_at_the_move_limit_is_cut_off_with_a_future_and_has_no_winner() -> None:
    envs = games(max_moves=3)

    play(envs, 0, 1, 2)

    assert envs.truncated.all()
    assert not envs.terminated.any()
    assert envs.final_seats.tolist() == [1, 1, 1], "the second seat would have moved next"
    assert np.count_nonzero(envs.final_obs[0][1:3]) == 3, "the position of the end, with its three stones"
    assert (envs.tally.cut_off, envs.tally.draws) == (3, 0)


def test_a_real_end_on_the_last_move_allowed_is_an_end() -> None:
    envs = games(max_moves=5)

    play(envs, 0, 3, 1, 4, 2)

    assert envs.terminated.all()
    assert not envs.truncated.any()
    assert (envs.tally.first_wins, envs.tally.cut_off) == (3, 0)


def test_a_new_game_begins_where_one_ended() -> None:
    envs = games()
    first_obs, first_masks = envs.obs.copy(), envs.masks.copy()

    play(envs, 0, 3, 1, 4, 2)

    assert np.array_equal(envs.obs, first_obs)
    assert np.array_equal(envs.masks, first_masks)
    assert envs.episode_lengths.tolist() == [0, 0, 0]
    assert all(state.history() == [] for state in envs.states)


@pytest.mark.parametrize("name", ["connect_four", "tic_tac_toe"])
def test_both_seats_see_their_own_stones_in_the_same_planes(name: str) -> None:
    envs = games(name, 1)
    num_planes = envs.obs.shape[1] - 1

    play(envs, 0)
    second_sees_opponent = envs.obs[0, :num_planes].copy()
    seats = [int(envs.obs[0, num_planes].max())]
    play(envs, 0 if name == "connect_four" else 1)
    stones = [int(plane.sum()) for plane in envs.obs[0, :num_planes]]
    seats.append(int(envs.obs[0, num_planes].max()))

    assert seats == [1, 0], "the last plane tells the seat"
    assert sorted(stones)[:2] == [1, 1]
    opponents = [plane for plane in range(num_planes) if second_sees_opponent[plane].sum() == 1]
    assert len(opponents) == 1
    own = next(plane for plane in range(num_planes) if stones[plane] == 1 and plane != opponents[0])
    first_stone = envs.states[0].clone()
    assert first_stone.history()[0] == 0
    assert np.array_equal(envs.obs[0, own], second_sees_opponent[opponents[0]]), "what was the other's is now mine"


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "othello", "hex(board_size=5)", "shogi", "nim"])
def test_masks_and_seats_are_those_of_the_library(name: str) -> None:
    envs, rng = games(name, 4), np.random.default_rng(1)

    for _ in range(40):
        envs.step(random_moves(envs, rng))
        for row, state in enumerate(envs.states):
            assert np.flatnonzero(envs.masks[row]).tolist() == state.legal_actions()
            assert envs.seats[row] == state.current_player()


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four", "shogi"])
def test_games_go_on_from_the_middle_with_the_same_bits(name: str) -> None:
    whole, rng = games(name, 4, max_moves=60), np.random.default_rng(2)
    for _ in range(23):
        whole.step(random_moves(whole, rng))
    saved, dealt = copy.deepcopy(whole.state_dict()), copy.deepcopy(rng.bit_generator.state)
    resumed, again = GameEnvs(name, 4, max_moves=60), np.random.default_rng()
    again.bit_generator.state = dealt
    resumed.load_state_dict(saved)

    for _ in range(80):
        assert np.array_equal(whole.obs, resumed.obs)
        assert np.array_equal(whole.masks, resumed.masks)
        assert np.array_equal(whole.seats, resumed.seats)
        whole.step(random_moves(whole, rng))
        resumed.step(random_moves(resumed, again))
        assert whole.finished == resumed.finished

    assert whole.tally == resumed.tally
    assert whole.exactness == "bit-exact"


def test_a_saved_game_with_an_illegal_move_is_refused() -> None:
    envs = games()
    play(envs, 0, 3)
    saved = envs.state_dict()
    saved["envs"]["moves"][1] = 0

    with pytest.raises(EnvStateError, match="the move 0 where it is not legal"):
        games().load_state_dict(saved)


def test_games_of_another_move_limit_are_refused() -> None:
    saved = games(max_moves=9).state_dict()

    with pytest.raises(EnvStateError, match="max_moves"):
        games(max_moves=8).load_state_dict(saved)


def test_an_illegal_move_is_refused_before_any_game_has_moved() -> None:
    envs = games()
    play(envs, 0)

    with pytest.raises(ActionMismatchError, match="the move 0 in game 1, where it is not legal"):
        envs.step(np.array([1, 0, 2]))
    assert all(state.history() == [0] for state in envs.states)


def test_an_abandoned_game_begins_anew_and_counts_for_nothing() -> None:
    envs = games()
    first_masks = envs.masks[1].copy()
    play(envs, 0, 3)

    envs.abandon(1)

    assert [len(state.history()) for state in envs.states] == [2, 0, 2]
    assert envs.episode_lengths.tolist() == [2, 0, 2]
    assert np.array_equal(envs.masks[1], first_masks)
    assert envs.tally.games == 0


def test_an_unknown_game_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownGameError, match="Did you mean 'tic_tac_toe'"):
        load_game("tictactoe")


def test_a_wrong_argument_of_a_game_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(ConfigError, match="board_sise"):
        load_game("hex(board_sise=5)")


@pytest.mark.parametrize(
    ("name", "flaw"),
    [
        ("backgammon", "chance"),
        ("kuhn_poker", "secrets"),
        ("goofspiel", "not made in turn"),
        ("chinese_checkers(players=3)", "3 players"),
    ],
)
def test_a_game_that_does_not_fit_is_told_why(name: str, flaw: str) -> None:
    with pytest.raises(UnfitGameError, match=flaw):
        load_game(name)


def test_the_games_that_fit_can_all_be_played() -> None:
    names = fitting_games()

    assert {"chess", "connect_four", "go", "shogi", "tic_tac_toe"} <= set(names)
    for name in names:
        envs = GameEnvs(name, 1)
        envs.reset(0)
        envs.step(envs.masks.argmax(axis=1))


def test_games_begin_with_moves_at_random_that_are_in_no_episode() -> None:
    envs = games("connect_four", 64, opening_moves=5)
    lengths = {len(state.history()) for state in envs.states}

    assert lengths == {0, 1, 2, 3, 4, 5}
    assert not envs.episode_lengths.any()
    assert [state.current_player() for state in envs.states] == envs.seats.tolist()
    again = games("connect_four", 64, opening_moves=5)
    assert [state.history() for state in again.states] == [state.history() for state in envs.states]


def test_openings_go_on_after_a_resume_where_they_were() -> None:
    rng, envs = np.random.default_rng(0), games(num_envs=4, opening_moves=3)
    for _ in range(20):
        envs.step(random_moves(envs, rng))
    resumed = games(num_envs=4, opening_moves=3)
    resumed.load_state_dict(copy.deepcopy(envs.state_dict()))
    for _ in range(20):
        moves = random_moves(envs, rng)
        for each in (envs, resumed):
            each.step(moves)

    assert [state.history() for state in resumed.states] == [state.history() for state in envs.states]


def test_a_game_that_would_be_over_in_the_opening_is_not_opened_further() -> None:
    envs = games(num_envs=32, opening_moves=9)

    assert not any(state.is_terminal() for state in envs.states)
    assert envs.masks.any(axis=1).all()


def test_one_step_is_shown_where_asked_and_the_next_in_memory_of_its_own_again() -> None:
    envs, plain, rng = games("connect_four"), games("connect_four"), np.random.default_rng(0)
    own_planes, own_masks = envs.planes, envs.masks
    for _ in range(60):  # several games to their ends
        moves = random_moves(plain, rng)
        planes, masks = np.full_like(own_planes, 7), np.ones_like(own_masks)
        before = own_planes.copy()
        envs.show_next_in(planes, masks)
        for each in (envs, plain):
            each.step(moves)

        assert envs.obs is envs.planes is planes
        assert envs.action_masks is envs.masks is masks
        assert np.array_equal(own_planes, before)
        assert np.array_equal(planes, plain.planes)
        assert np.array_equal(masks, plain.masks)
        saved, expected = envs.state_dict()["arrays"], plain.state_dict()["arrays"]
        assert all(np.array_equal(saved[name], expected[name]) for name in expected)

        moves = random_moves(plain, rng)
        for each in (envs, plain):
            each.step(moves)
        assert envs.obs is own_planes
        assert envs.action_masks is own_masks
        assert np.array_equal(own_planes, plain.planes)
    assert plain.tally.games > 5


def test_an_abandoned_game_may_be_begun_with_any_first_move_again() -> None:
    envs = games(num_envs=2)
    play(envs, 4, 0)

    envs.abandon(1)

    assert envs.masks.sum(axis=1).tolist() == [7, 9]
