"""Past versions in training: they move where they should, and nobody learns from their moves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.errors import ConfigError, EvaluationError, WorkloadError
from hookloop.rl.config import TrainerConfig
from hookloop.selfplay import GameConfig, NetworkConfig, OpponentsConfig, SelfPlayConfig, SelfPlayTrainer, build_trainer
from hookloop.selfplay.past_versions import PastVersions

NUM_GAMES, HORIZON = 8, 16
PER_EPOCH = NUM_GAMES * HORIZON


def trainer(share: float = 0.5, every_epochs: int = 1) -> SelfPlayTrainer:
    config = SelfPlayConfig(
        game=GameConfig(name="tic_tac_toe", num_envs=NUM_GAMES),
        network=NetworkConfig(kind="layers", hidden=(16,)),
        trainer=TrainerConfig(horizon=HORIZON, num_minibatches=2, update_epochs=1, gamma=1.0),
        opponents=OpponentsConfig(share=share, every_epochs=every_epochs, capacity=2),
    )
    return build_trainer(config, seed=0)


def test_past_versions_move_in_their_games_and_seats_alone() -> None:
    playing = trainer()
    playing.train(2 * PER_EPOCH)  # in the second epoch there is a version to play against
    arrays = playing.experience.arrays

    is_theirs = ~arrays["valid"]
    expected = np.zeros_like(is_theirs)
    expected[:, [0, 2]] = arrays["seats"][:, [0, 2]] == 1
    expected[:, [1, 3]] = arrays["seats"][:, [1, 3]] == 0
    assert (is_theirs == expected).all()
    assert is_theirs.any()


def test_until_there_is_a_version_the_policy_plays_itself() -> None:
    playing = trainer(every_epochs=2)
    playing.train(2 * PER_EPOCH)
    assert playing.experience.arrays["valid"].all()
    assert playing.opponents is not None
    assert [version.name for version in playing.opponents.pool.versions] == ["epoch-2"]

    playing.train(3 * PER_EPOCH)
    assert not playing.experience.arrays["valid"].all()


def test_nobody_learns_from_the_moves_of_past_versions() -> None:
    playing = trainer()
    trained: list[torch.Tensor] = []

    def look(ctx: object) -> None:
        trained.append(ctx.batch.indices.clone())  # type: ignore[attr-defined]  # a minibatch

    playing.train(PER_EPOCH)
    playing.add_hook(look, name="look", on="minibatch_start")
    playing.train(2 * PER_EPOCH)

    valid = playing.experience["valid"].view(-1)
    assert torch.cat(trained).sort().values.tolist() == valid.nonzero().squeeze(1).tolist()


def test_the_moves_stored_are_those_that_were_made() -> None:
    playing = trainer()
    made: list[np.ndarray] = []
    step = playing.games.step
    playing.games.step = lambda actions: (made.append(actions.copy()), step(actions))[1]  # type: ignore[method-assign]
    playing.train(2 * PER_EPOCH)

    assert (playing.experience.arrays["actions"] == np.stack(made[HORIZON:])).all()


def test_steps_count_the_moves_of_both_and_games_are_told() -> None:
    playing = trainer()
    playing.train(3 * PER_EPOCH)
    metrics = playing.loop.context.metrics

    assert playing.state.clocks.env_steps == 3 * PER_EPOCH
    assert metrics["opponents/count"] == 2
    assert 0 <= metrics["opponents/score"] <= 1


def test_without_a_share_there_are_none() -> None:
    assert trainer(share=0.0).opponents is None


def test_opponents_come_before_training() -> None:
    playing = trainer(share=0.0)
    playing.train(PER_EPOCH)
    past = PastVersions(playing.policy, 2, capacity=1, every_epochs=1, seed=0)
    with pytest.raises(ConfigError, match="before train"):
        playing.play_against(past)


def test_a_state_without_past_versions_is_refused_where_they_play() -> None:
    without = trainer(share=0.0)
    without.train(PER_EPOCH)

    with pytest.raises(WorkloadError, match=r"opponents\.share=0"):
        trainer().workload.load_state_dict(without.workload.state_dict())


def test_a_self_play_trainer_says_how_it_is_evaluated() -> None:
    with pytest.raises(EvaluationError, match="LeagueHook"):
        trainer().player()
