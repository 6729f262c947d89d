"""Self-play learns: after some thousand moves a policy beats who moves at random."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.recipes.selfplay import connect4, tictactoe
from hookloop.selfplay import (
    NetworkPlayer,
    RandomPlayer,
    build_trainer,
    play_all_lines,
    play_match,
)


def test_tic_tac_toe_is_learned_by_playing_both_seats() -> None:
    trainer = build_trainer(tictactoe(), seed=0)
    player = NetworkPlayer(trainer.policy)
    lines_before = play_all_lines("tic_tac_toe", player)
    score_before = play_match("tic_tac_toe", player, RandomPlayer(), games=200)

    trainer.train(50_000)
    lines = play_all_lines("tic_tac_toe", player)
    score = play_match("tic_tac_toe", player, RandomPlayer(), games=200)

    assert score.mean > max(0.9, score_before.mean + 0.2)
    assert lines_before.losses > 0.4 * lines_before.games
    assert lines.losses < 0.2 * lines.games


def test_tic_tac_toe_is_learned_from_games_that_run_ahead() -> None:
    ahead = tictactoe().model_copy(update={"workers": 1, "rollout_mode": "async", "max_lag": 2})
    trainer, lags = build_trainer(ahead, seed=1), list[float]()
    trainer.add_hook(lambda ctx: lags.append(ctx.metrics["workers/lag"]), name="look", on="epoch_end")
    player = NetworkPlayer(trainer.policy)
    before = play_match("tic_tac_toe", player, RandomPlayer(), games=200)

    trainer.train(24_000)

    score = play_match("tic_tac_toe", player, RandomPlayer(), games=200)
    assert score.mean > max(0.75, before.mean + 0.2)
    assert trainer.workload.exactness == "approximate"
    assert 0 < max(lags) <= 2


@pytest.mark.faults  # trains for half a minute
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_after_the_recipe_no_opponent_of_tic_tac_toe_can_win(seed: int) -> None:
    config = tictactoe()
    trainer = build_trainer(config, seed=seed)

    trainer.train(config.total_env_steps)

    assert play_all_lines("tic_tac_toe", NetworkPlayer(trainer.policy)).losses == 0


def test_the_recipe_for_connect_four_trains() -> None:
    trainer = build_trainer(connect4(), seed=0)

    result = trainer.train(64 * 64)

    assert result.outcome == "completed"
    assert trainer.tally.games == result.episodes > 50
