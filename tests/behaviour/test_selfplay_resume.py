"""The house rule for self-play: N + resume N equals 2N, bit for bit, in the middle of games."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.hooks import LeagueHook
from hookloop.pools.process import ProcessPool
from hookloop.rl.config import PPOConfig, TrainerConfig
from hookloop.rl.slots import SlotSetup
from hookloop.selfplay import (
    GameConfig,
    League,
    NetworkConfig,
    OpponentsConfig,
    SelfPlayConfig,
    SelfPlayTrainer,
    build_trainer,
)
from hookloop.selfplay.build import build_slots, performer_maker
from tests.behaviour.test_slot_workers import Killer

EPOCHS = 4


def settings(
    game: str,
    kind: Any = "residual",
    max_moves: int | None = None,
    *,
    share: float = 0.0,
    opening_moves: int = 0,
    from_mover: bool = False,
) -> SelfPlayConfig:
    return SelfPlayConfig(
        game=GameConfig(name=game, num_envs=4, max_moves=max_moves, opening_moves=opening_moves),
        opponents=OpponentsConfig(share=share, capacity=2, every_epochs=1),
        network=NetworkConfig(kind=kind, blocks=1, channels=4, hidden=(16,), from_mover=from_mover),
        ppo=PPOConfig(entropy_coefficient=0.01),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, update_epochs=2, gamma=1.0),
    )


CASES = {
    "tic-tac-toe": settings("tic_tac_toe"),
    "tic-tac-toe, plain layers": settings("tic_tac_toe", "layers"),
    "connect four, cut off": settings("connect_four", max_moves=13),
    "connect four, windows, openings, past versions": settings("connect_four", "windows", share=0.5, opening_moves=5),
    "shogi, from the mover": settings("shogi", max_moves=40, from_mover=True),
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


def league_hook() -> LeagueHook:
    return LeagueHook(League("tic_tac_toe", games=4, capacity=1, promote_above=0.0), "every 1 epochs")


def test_ratings_and_their_history_survive_a_resume() -> None:
    config, total = settings("tic_tac_toe", "layers", share=0.5), 6 * 16 * 4
    whole, saves = build_trainer(config, seed=3), dict[int, Any]()
    league = league_hook()
    whole.add_hook(league)
    whole.add_hook(lambda ctx: saves.update({ctx.state.epoch: copy.deepcopy(whole.state_dict())}), on="epoch_end",
                   name="save", stage="checkpoint")  # fmt: skip
    whole.train(total)

    resumed, resumed_league = build_trainer(config, seed=3), league_hook()
    resumed.add_hook(resumed_league)
    resumed.add_hook(lambda ctx: None, on="epoch_end", name="save", stage="checkpoint")
    resumed.load_state_dict(saves[3])
    assert len(resumed_league.league.promotions) >= 1
    assert "rating" in resumed.state.eval_scores
    resumed.train(total)

    assert torch.equal(resumed.optimizer.flat, whole.optimizer.flat)
    assert resumed_league.latest == league.latest
    assert resumed_league.league.results == league.league.results
    assert resumed_league.league.promotions == league.league.promotions
    assert len({pair[0] for pair in league.league.results}) == 6
    assert resumed.state.eval_scores == whole.state.eval_scores


def test_a_league_changes_nothing_in_training() -> None:
    config, total = settings("tic_tac_toe", share=0.5), EPOCHS * 16 * 4
    plain, watched = build_trainer(config, seed=3), build_trainer(config, seed=3)
    watched.add_hook(league_hook())
    torch.manual_seed(5)
    plain.train(total)
    after = torch.get_rng_state()
    torch.manual_seed(5)
    watched.train(total)

    assert torch.equal(plain.optimizer.flat, watched.optimizer.flat)
    assert ending(plain) == ending(watched)
    assert torch.equal(after, torch.get_rng_state()), "nothing is drawn from the global stream"
    assert watched.policy.training == plain.policy.training


@pytest.mark.parametrize("case", ["connect four, cut off", "connect four, windows, openings, past versions"])
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


def compare_with_kills(epochs: int, longest_seconds: float) -> int:
    """Train games against past versions with two workers that are killed, and with none; return the number of kills."""
    config = CASES["connect four, windows, openings, past versions"].model_copy(update={"workers": 0, "slots": 2})
    expected, pools = build_trainer(config, seed=3), list[ProcessPool]()
    expected.train(epochs * 16 * 4)

    def remembered(_payload: Any, _weights: Any) -> ProcessPool:
        pools.append(ProcessPool(performer_maker(config), workers=2))
        return pools[-1]

    slots = SlotSetup(build_slots(config).envs, remembered)
    trainer, killer = build_trainer(config, seed=3, slots=slots), Killer(pools, longest_seconds)
    trainer.add_hook(killer, name="killer")
    trainer.train(epochs * 16 * 4)

    assert torch.equal(trainer.optimizer.flat, expected.optimizer.flat)
    assert not trainer.experience["valid"].all()
    assert torch.equal(trainer.experience["valid"], expected.experience["valid"])
    return killer.kills


def test_games_against_past_versions_survive_workers_that_are_killed() -> None:
    # A second kill may find nobody: who was killed before is only just coming back.
    assert compare_with_kills(3, longest_seconds=0.0) >= 1


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_games_against_past_versions_survive_thirty_kills_at_any_moment() -> None:
    assert compare_with_kills(40, longest_seconds=0.03) >= 30


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


@pytest.mark.parametrize("stop_after", [None, 1, 5])
def test_positions_are_stored_as_the_games_show_them_also_after_a_collection_that_was_cut_short(
    stop_after: int | None,
) -> None:
    trainer = build_trainer(settings("connect_four"), seed=1)
    games, epochs = trainer.games, list[Any]()

    def look() -> tuple[Any, Any]:
        return games.planes.copy(), games.masks.copy()

    def begin(ctx: Any) -> None:
        epochs.append([look()])

    def note(ctx: Any) -> None:
        epochs[-1].append(look())
        if len(epochs) == 1 and len(epochs[-1]) - 1 == stop_after:
            ctx.state.stop_rollout = True

    def compare(ctx: Any) -> None:
        arrays, steps = trainer.experience.arrays, trainer.experience.steps
        for step, (planes, masks) in enumerate(epochs[-1][:steps]):
            assert (arrays["obs"][step] == planes).all()
            assert (arrays["masks"][step] == masks).all()

    for event, act in {"rollout_start": begin, "step_end": note, "rollout_end": compare}.items():
        trainer.add_hook(act, name=act.__name__, on=event)
    trainer.train(16 * 4 * 2)

    assert [len(seen) - 1 for seen in epochs][:2] == [stop_after or 16, 16]


def test_the_outcomes_of_an_epoch_are_told_as_rates() -> None:
    trainer = build_trainer(settings("tic_tac_toe"), seed=1)
    trainer.train(64)

    metrics = trainer.loop.context.metrics
    assert metrics["game/count"] == trainer.tally.games == trainer.state.clocks.episodes
    assert sum(metrics[f"game/{name}"] for name in ("first_wins", "second_wins", "draws", "cut_off")) == pytest.approx(
        1
    )
    assert set(trainer.state.rollout_stats) == {"first_win", "second_win", "draw", "cut_off", "return", "length"}
