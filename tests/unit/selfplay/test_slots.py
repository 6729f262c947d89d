"""Games played as tasks: by anyone, late, and against past versions that come with the weights."""

from __future__ import annotations

import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.errors import WorkloadError
from hookloop.rl.config import TrainerConfig
from hookloop.rl.learner import Learner
from hookloop.rl.slots import SlotSetup
from hookloop.rl.slots.performing import RolloutNotes
from hookloop.selfplay import GameConfig, NetworkConfig, OpponentsConfig, SelfPlayConfig, SelfPlayTrainer, build_trainer
from hookloop.selfplay.build import build_slots, performer_maker
from hookloop.selfplay.collecting import GameLearner, GameVtraceLearner
from hookloop.selfplay.tally import outcome_of
from tests.unit.rl.slots.pools import LatePool, ScatteredPool

NUM_GAMES, HORIZON = 8, 16
PER_EPOCH = NUM_GAMES * HORIZON


def settings(*, share: float = 0.5, **changes: Any) -> SelfPlayConfig:
    return SelfPlayConfig(
        game=GameConfig(name="tic_tac_toe", num_envs=NUM_GAMES, opening_moves=3),
        network=NetworkConfig(kind="layers", hidden=(16,)),
        trainer=TrainerConfig(horizon=HORIZON, num_minibatches=2, update_epochs=1, gamma=0.99),
        opponents=OpponentsConfig(share=share, every_epochs=1, capacity=2),
        workers=0,
        slots=4,
    ).model_copy(update=changes)


def trainer_with(config: SelfPlayConfig, make_pool: Any) -> SelfPlayTrainer:
    """A trainer whose games are played by the pool that ``make_pool(make_performer)`` makes."""
    setup = build_slots(config)
    make = performer_maker(config)
    slots = SlotSetup(setup.envs, lambda _payload, _weights: make_pool(make), setup.mode, setup.max_lag)
    return build_trainer(config, seed=3, slots=slots)


def late(late_by: dict[int, int], **changes: Any) -> SelfPlayTrainer:
    """A trainer that runs ahead, some of whose slots come home late."""
    config = settings(workers=1, rollout_mode="async", **changes)
    return trainer_with(config, partial(LatePool, late_by=late_by))


def ending(trainer: SelfPlayTrainer) -> dict[str, Any]:
    metrics = {name: value for name, value in trainer.loop.context.metrics.items() if not name.startswith("workers/")}
    histories = [trainer.games.history(row) for row in range(NUM_GAMES)]
    return {"metrics": metrics, "histories": histories, "tally": trainer.tally, "last": last_game(trainer)}


def last_game(trainer: SelfPlayTrainer) -> tuple[list[int], str, int]:
    ended = trainer.games.last_ended
    assert ended is not None
    return ended.state.history(), ended.outcome, ended.played


def test_games_against_past_versions_are_the_same_whoever_plays_them_and_resume_to_them() -> None:
    whole, saves = build_trainer(settings(), seed=3), dict[int, Any]()
    save = lambda ctx: saves.__setitem__(ctx.state.epoch, copy.deepcopy(whole.state_dict()))  # noqa: E731
    whole.add_hook(save, name="save", on="epoch_end", stage="checkpoint")
    whole.train(6 * PER_EPOCH)

    for epoch in (0, 3):
        other = trainer_with(settings(), partial(ScatteredPool, workers=3))
        other.add_hook(lambda ctx: None, name="save", on="epoch_end", stage="checkpoint")
        if epoch:
            other.load_state_dict(saves[epoch])
        other.train(6 * PER_EPOCH)

        assert torch.equal(other.optimizer.flat, whole.optimizer.flat)
        assert ending(other) == ending(whole)
    assert whole.loop.context.metrics["opponents/count"] == 2
    assert 0 <= whole.loop.context.metrics["opponents/score"] <= 1


def test_the_game_that_ended_last_comes_home_and_stays_until_another_has_ended() -> None:
    small = TrainerConfig(horizon=1, num_minibatches=1, update_epochs=1)
    playing, seen = build_trainer(settings(trainer=small), seed=3), list[tuple[int, Any]]()
    look = lambda ctx: seen.append((ctx.state.clocks.episodes, ctx.trainer.games.last_ended))  # noqa: E731
    playing.add_hook(look, name="look", on="epoch_end")
    playing.train(24 * NUM_GAMES)

    changes = [(one, other) for one, other in pairwise(seen) if one[1] is not None]
    assert all((one[1] is other[1]) == (one[0] == other[0]) for one, other in changes)
    assert any(one[1] is other[1] for one, other in changes)
    for _, (state, outcome, _) in (pair[0] for pair in changes):
        assert state.is_terminal()
        assert outcome_of(state.returns()[0]) == outcome


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_past_versions_have_each_seat_in_the_first_games_of_every_slot(share: float) -> None:
    playing = build_trainer(settings(share=share), seed=3)
    playing.train(PER_EPOCH)
    assert playing.experience.arrays["valid"].all(), "there was no version yet"
    playing.train(2 * PER_EPOCH)

    arrays = playing.experience.arrays
    expected = np.zeros_like(arrays["valid"])
    for slot, game in enumerate(range(0, NUM_GAMES, 2)):  # two games to a slot, and one of them against a past version
        expected[:, game] = arrays["seats"][:, game] == (1 if slot % 2 == 0 else 0)
    assert (~arrays["valid"] == expected).all()
    assert expected.any()


def test_nobody_learns_from_the_moves_of_past_versions_that_were_played_elsewhere() -> None:
    playing, trained = build_trainer(settings(), seed=3), list[torch.Tensor]()
    playing.train(PER_EPOCH)
    playing.add_hook(lambda ctx: trained.append(ctx.batch.indices.clone()), name="look", on="minibatch_start")
    playing.train(2 * PER_EPOCH)

    valid = playing.experience["valid"].view(-1)
    assert not valid.all()
    assert torch.cat(trained).sort().values.tolist() == valid.nonzero().squeeze(1).tolist()


def test_the_score_against_past_versions_comes_home() -> None:
    playing = build_trainer(settings(share=1.0), seed=3)
    playing.train(PER_EPOCH)
    games_before = playing.tally.games
    playing.train(2 * PER_EPOCH)

    assert playing.opponents is not None
    assert playing.opponents.player.score.games == playing.tally.games - games_before > 0


def test_weights_of_a_past_version_are_refused_where_it_plays_in_no_game() -> None:
    performer = performer_maker(settings(share=0.0))()
    weights = build_trainer(settings(), seed=3).policy.state_dict()
    performer.take_weights(1, weights)

    with pytest.raises(WorkloadError, match="past_games of at least 1"):
        performer.take_weights(2, {**weights, **{f"opponent.{name}": tensor for name, tensor in weights.items()}})


def test_games_that_run_ahead_are_no_older_than_their_bound_and_tell_their_lag() -> None:
    trainer, lags = late({0: 4, 1: 1}, max_lag=2), list[float]()

    def look(ctx: Any) -> None:
        gathered = ctx.trainer.workload.collector
        lags.append(ctx.metrics["workers/lag"])
        assert max(gathered.versions) - min(gathered.versions) <= 2

    trainer.add_hook(look, name="look", on="epoch_end")
    trainer.train(12 * PER_EPOCH)

    assert trainer.loop.context.metrics["workers/dropped"] > 0
    assert any(lags)
    assert max(lags) <= 2
    assert trainer.loop.context.metrics["opponents/count"] == 2
    assert not trainer.experience.arrays["valid"].all()


def test_games_that_run_ahead_say_that_a_resume_is_approximate_and_go_on_from_what_was_saved() -> None:
    trainer = late({0: 2})
    trainer.train(3 * PER_EPOCH)
    saved = copy.deepcopy(trainer.state_dict())
    trainer.train(4 * PER_EPOCH)
    other = late({1: 2})
    other.load_state_dict(saved)

    assert trainer.workload.exactness == "approximate"
    assert other.train(6 * PER_EPOCH).epochs == 6
    assert other.opponents is not None
    assert [version.name for version in other.opponents.pool.versions] == ["epoch-5", "epoch-6"]


@pytest.fixture(scope="module")
def collected() -> SelfPlayTrainer:
    """A trainer that has played against past versions, and not learned from it yet."""
    trainer = build_trainer(settings(), seed=3)
    trainer.train(2 * PER_EPOCH)
    collector = trainer.workload.collector
    assert trainer.opponents is not None
    trainer.opponents.begin()
    collector.collect(RolloutNotes(collector))
    assert not trainer.experience.arrays["valid"].all()
    return trainer


def estimate(
    trainer: SelfPlayTrainer, learner_type: type[Learner], log_probs: torch.Tensor | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the advantages and returns of what was collected, had its moves been so likely; it is left as it was."""
    learner, experience = trainer.workload.learner, trainer.experience
    before = {name: column.clone() for name, column in experience.columns.items()}
    if log_probs is not None:
        experience["log_probs"].copy_(log_probs)
    learner_type(
        trainer.policy, learner.losses, learner.optimizer, learner.sampler, generator=learner.generator,
        update_epochs=1, gamma=learner.gamma, gae_lambda=learner.gae_lambda,
    ).estimate(experience, trainer.workload.collector.last_values())  # fmt: skip
    found = experience["advantages"].clone().numpy(), experience["returns"].clone().numpy()
    for name, column in before.items():
        experience[name].copy_(column)
    return found


def test_moves_of_weights_that_have_not_changed_count_as_they_do_in_step_with_learning(
    collected: SelfPlayTrainer,
) -> None:
    for found, expected in zip(estimate(collected, GameVtraceLearner), estimate(collected, GameLearner), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_how_likely_a_past_version_made_its_moves_does_not_count(collected: SelfPlayTrainer) -> None:
    log_probs, valid = collected.experience["log_probs"], collected.experience["valid"]

    as_it_was = estimate(collected, GameVtraceLearner)
    theirs_were_likelier = estimate(collected, GameVtraceLearner, log_probs + 3.0 * ~valid)
    own_were_likelier = estimate(collected, GameVtraceLearner, log_probs + 3.0 * valid)

    assert (as_it_was[0] == theirs_were_likelier[0]).all()
    assert (as_it_was[1] == theirs_were_likelier[1]).all()
    assert abs(as_it_was[0] - own_were_likelier[0]).max() > 0.01
