"""The house rule for self-play: N + resume N equals 2N, bit for bit, in the middle of games."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.rl.config import PPOConfig, TrainerConfig
from hookloop.selfplay import GameConfig, NetworkConfig, SelfPlayConfig, SelfPlayTrainer, build_trainer

EPOCHS = 4


def settings(game: str, kind: Any = "residual", max_moves: int | None = None) -> SelfPlayConfig:
    return SelfPlayConfig(
        game=GameConfig(name=game, num_envs=4, max_moves=max_moves),
        network=NetworkConfig(kind=kind, blocks=1, channels=4, hidden=(16,)),
        ppo=PPOConfig(entropy_coefficient=0.01),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, update_epochs=2, gamma=1.0),
    )


CASES = {
    "tic-tac-toe": settings("tic_tac_toe"),
    "tic-tac-toe, plain layers": settings("tic_tac_toe", "layers"),
    "connect four, cut off": settings("connect_four", max_moves=13),
    "shogi": settings("shogi", max_moves=40),
}


def ending(trainer: SelfPlayTrainer) -> dict[str, Any]:
    clocks = {name: value for name, value in trainer.state.clocks.reading().items() if name != "seconds"}
    histories = [state.history() for state in trainer.games.states]
    return {"clocks": clocks, "tally": trainer.tally, "histories": histories, "losses": trainer.state.loss_stats}


@pytest.mark.parametrize("case", CASES)
def test_self_play_resumes_bit_for_bit_in_the_middle_of_games(case: str) -> None:
    config, total = CASES[case], EPOCHS * 16 * 4
    saves: dict[int, Any] = {}

    def save(ctx: Any) -> None:
        saves[ctx.state.epoch] = copy.deepcopy(whole.state_dict())

    whole = build_trainer(config, seed=3)
    whole.add_hook(save, name="save", on="epoch_end", stage="checkpoint")
    whole.train(total)

    for epoch in (1, EPOCHS // 2):
        assert saves[epoch]["workload"]["collector"]["envs"]["envs"]["lengths"].any(), "some game is under way"
        resumed = build_trainer(config, seed=3)
        resumed.add_hook(lambda ctx: None, name="save", on="epoch_end", stage="checkpoint")
        resumed.load_state_dict(saves[epoch])
        resumed.train(total)

        assert torch.equal(resumed.optimizer.flat, whole.optimizer.flat)
        assert ending(resumed) == ending(whole)


@pytest.mark.parametrize("case", ["tic-tac-toe", "connect four, cut off"])
def test_games_played_as_tasks_by_anyone_are_the_same_games(case: str) -> None:
    config, total = CASES[case].model_copy(update={"workers": 0, "slots": 2}), EPOCHS * 16 * 4
    whole, half = build_trainer(config, seed=3), build_trainer(config, seed=3)
    whole.train(total)
    half.train(total // 2)

    resumed = build_trainer(config.model_copy(update={"workers": 1}), seed=3)
    resumed.load_state_dict(half.state_dict())
    resumed.train(total)

    assert torch.equal(resumed.optimizer.flat, whole.optimizer.flat)
    assert resumed.tally == whole.tally
    assert whole.tally.games > 0


def test_a_rollout_of_games_that_is_ended_early_keeps_the_signs_of_the_seats() -> None:
    trainer = build_trainer(settings("tic_tac_toe").model_copy(update={"workers": 0, "slots": 2}), seed=3)

    def stop(ctx: Any) -> None:
        ctx.state.stop_rollout = ctx.state.clocks.env_steps == 4 * 5

    trainer.add_hook(stop, name="stop", on="step_end")
    trainer.train(20)

    seats, values = trainer.experience["seats"][5], trainer.experience["values"][5]
    assert torch.equal(trainer.workload.collector.last_values(), torch.where(seats == 0, values, -values))


def test_what_is_stored_of_a_game_has_the_signs_of_its_seats() -> None:
    trainer = build_trainer(settings("tic_tac_toe"), seed=1)
    trainer.train(64)
    arrays = trainer.experience.arrays

    seats, ends = arrays["seats"], trainer.experience.ends()
    alternates = seats[1:] != seats[:-1]
    assert (alternates | ends[:-1]).all(), "the seats take turns within a game"
    assert (seats[1:][ends[:-1]] == 0).all(), "and the first begins"
    assert (arrays["rewards"][~ends] == 0).all()
    assert (arrays["rewards"] >= 0).all(), "a move of tic-tac-toe wins or draws; it never loses at once"


def test_the_outcomes_of_an_epoch_are_told_as_rates() -> None:
    trainer = build_trainer(settings("tic_tac_toe"), seed=1)
    trainer.train(64)

    metrics = trainer.loop.context.metrics
    assert metrics["game/count"] == trainer.tally.games == trainer.state.clocks.episodes
    assert sum(metrics[f"game/{name}"] for name in ("first_wins", "second_wins", "draws", "cut_off")) == pytest.approx(
        1
    )
    assert set(trainer.state.rollout_stats) == {"first_win", "second_win", "draw", "cut_off", "return", "length"}
