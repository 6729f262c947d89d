"""Looking at games: what is seen is what is played, and who looks changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

import torch

from hookloop.boards import Move
from hookloop.errors import CheckpointError
from hookloop.selfplay import GameConfig, GameEnvs, NetworkConfig, NetworkPlayer, SelfPlayConfig, build_trainer
from hookloop.selfplay.games import EndedGame
from hookloop.selfplay.library import load_game
from hookloop.selfplay.recording import record_game
from hookloop.selfplay.thinking import Thinker, load_thinker
from hookloop.selfplay.watching import GameRecord, GameWatch
from tests.saving import is_same


def played(*moves: int) -> GameEnvs:
    envs = GameEnvs("connect_four", 2)
    envs.reset(0)
    for move in moves:
        envs.step(np.array([move, move]))
    return envs


def small(game: str = "connect_four", **network: object) -> SelfPlayConfig:
    return SelfPlayConfig(
        game=GameConfig(name=game, num_envs=4),
        network=NetworkConfig.model_validate({"kind": "layers", "hidden": (16,), **network}),
    )


def test_a_look_shows_the_moves_and_marks_the_last() -> None:
    envs = played(3, 4)
    watch = GameWatch(envs)

    seen = watch.look()

    assert seen.moves == (Move(1, 0, "x3"), Move(2, 1, "o4"))
    assert seen.board.last == {(5, 4)}
    assert seen.seats == ("X", "O")
    assert (seen.game, seen.games, seen.buffered) == ("connect_four", 0, None)
    envs.step(np.array([3, 0]))
    assert watch.look().moves[-1] == Move(3, 0, "x3")


def test_a_look_after_a_game_has_ended_shows_the_next_and_counts_the_last() -> None:
    envs = played(0, 1, 0, 1, 0, 1)
    watch = GameWatch(envs)
    watch.look()

    envs.step(np.array([0, 2]))
    envs.step(np.array([5, 1]))
    seen = watch.look()

    assert seen.moves == (Move(1, 0, "x5"),)
    assert seen.tally == {"first_wins": 1, "second_wins": 1, "draws": 0, "cut_off": 0}
    assert envs.last_ended is not None
    assert envs.last_ended[1] == "second_win"


def test_a_look_at_chess_tells_how_the_position_stands() -> None:
    record = GameRecord(load_game("chess"))
    for text in ("e4", "d5", "exd5", "Qxd5", "Nc3", "Qe5+"):
        seat, state = record.state.current_player(), record.state
        record.play(next(a for a in state.legal_actions() if state.action_to_string(seat, a) == text))
    envs = GameEnvs("chess", 1)
    envs.reset(0)
    for action in record.history:
        envs.step(np.array([action]))

    seen = GameWatch(envs).look()

    assert (seen.material, seen.is_check, seen.quiet_moves) == ((38.0, 38.0), True, 2)
    assert seen.king_moves == 0, "blocking is the queen's, the bishop's and the knights' matter"


def test_the_moves_of_an_opening_that_was_drawn_are_not_played_by_anybody() -> None:
    envs = GameEnvs("connect_four", 8, opening_moves=4)
    envs.reset(3)
    lengths, seen = list[int](), list[int]()
    while len(seen) < 20:
        envs.step(envs.masks.argmax(axis=1))
        if envs.finished:
            assert envs.last_ended is not None
            lengths.append(envs.finished[-1].length)
            seen.append(envs.last_ended.played)
            assert 0 <= len(envs.last_ended.state.history()) - envs.last_ended.played <= 4

    assert seen == lengths


def test_games_that_are_closed_are_shown_as_they_were() -> None:
    envs = played(3)
    watch = GameWatch(envs)
    before = watch.look()

    envs.close()

    assert watch.look() == before


def test_who_looks_and_thinks_changes_nothing() -> None:
    def trained(*, looks: bool) -> object:
        trainer = build_trainer(small(), seed=3)
        watch = trainer.watch_game()
        for steps in (512, 1024):
            trainer.train(steps)
            if looks:
                watch.look()
                assert trainer.games.last_ended is not None
                record_game(trainer.games.last_ended, Thinker(trainer.games.game, trainer.policy))
        return trainer.workload.state_dict()

    assert is_same(trained(looks=True), trained(looks=False))


@pytest.mark.parametrize("network", [{}, {"kind": "residual", "blocks": 1, "channels": 4}])
def test_the_likeliest_move_is_the_one_the_policy_takes(network: dict[str, object]) -> None:
    trainer = build_trainer(small(**network), seed=0)
    thinker, envs = Thinker(trainer.games.game, trainer.policy), played(3, 3, 2)

    thoughts = thinker.think([envs.states[0]])[0]

    expected = NetworkPlayer(trainer.policy).choose(envs, np.array([0]))[0]
    assert thinker.choose(envs.states[0], temperature=0.0, random=np.random.default_rng()) == expected
    assert thoughts.moves == tuple(range(7))
    assert thoughts.probabilities().sum() == pytest.approx(1.0)
    assert (
        thoughts.probabilities(0.01).max() >= thoughts.probabilities(1.0).max() >= thoughts.probabilities(100.0).max()
    )
    seen = torch.from_numpy(envs.planes[:1])
    assert thoughts.value == pytest.approx(float(trainer.policy.value(seen)[0]), abs=1e-6)


def test_only_legal_moves_are_thought_of() -> None:
    trainer = build_trainer(small(), seed=0)
    full = played(0, 0, 0, 0, 0, 0)

    thoughts = Thinker(trainer.games.game, trainer.policy).think(full.states)

    assert [each.moves for each in thoughts] == [(1, 2, 3, 4, 5, 6)] * 2


def test_weights_of_another_network_are_refused() -> None:
    saved = build_trainer(small(kind="residual", blocks=1, channels=4), seed=0).workload.state_dict()

    with pytest.raises(CheckpointError, match="does not fit the settings"):
        load_thinker(small(), saved)


def test_a_recorded_game_has_a_row_for_each_move_and_speaks_for_the_first_seat() -> None:
    trainer = build_trainer(small(), seed=0)
    record = GameRecord(trainer.games.game)
    record.follow([0, 1, 0, 1, 0, 1, 2, 1])  # the second seat wins

    about, arrays = record_game(
        EndedGame(record.state, "second_win", len(record.history)), Thinker(record.game, trainer.policy)
    )

    assert (about["kind"], about["game"], about["end"], about["length"]) == ("game", "connect_four", "second_win", 8)
    assert arrays["rewards"].tolist() == [0.0] * 7 + [-1.0]
    assert arrays["seats"].tolist() == [0, 1] * 4
    assert bytes(arrays["moves"][2]) == b"x0"
    assert bytes(arrays["boards"][0]).rstrip(b"\0") == (".......\n" * 5 + "x......\n").encode()
    assert arrays["probabilities"].shape == (8, 7)
    chosen = arrays["probabilities"][np.arange(8), arrays["actions"]]
    np.testing.assert_allclose(chosen, arrays["chosen_probabilities"], rtol=1e-6)
    first = Thinker(record.game, trainer.policy).think([record.game.new_initial_state()])[0]
    assert arrays["values"][0] == pytest.approx(first.value)
