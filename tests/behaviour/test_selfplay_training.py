"""Self-play learns: after some thousand moves a policy beats who moves at random."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.recipes.selfplay import connect4, tictactoe
from hookloop.selfplay import NetworkPlayer, RandomPlayer, build_trainer, play_match


def test_tic_tac_toe_is_learned_by_playing_both_seats() -> None:
    trainer = build_trainer(tictactoe(), seed=0)
    before = play_match("tic_tac_toe", NetworkPlayer(trainer.policy), RandomPlayer(), games=200)

    trainer.train(20_000)
    after = play_match("tic_tac_toe", NetworkPlayer(trainer.policy), RandomPlayer(), games=200)

    assert after.mean > 0.8
    assert after.mean > before.mean + 0.2


def test_the_recipe_for_connect_four_trains() -> None:
    trainer = build_trainer(connect4(), seed=0)

    result = trainer.train(64 * 64)

    assert result.outcome == "completed"
    assert trainer.tally.games == result.episodes > 50
