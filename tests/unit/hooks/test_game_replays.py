"""Games that are kept while a run trains: now and then, few of them, and without a trace in training."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop import HookManager, TrainingLoop
from hookloop.errors import RegistrationError
from hookloop.hooks import GameReplayHook, LeagueHook
from hookloop.replays import ReplayFolder, read_replay
from hookloop.rl.config import TrainerConfig
from hookloop.selfplay import GameConfig, League, NetworkConfig, SelfPlayConfig, SelfPlayTrainer, build_trainer
from hookloop.testing import ToyWorkload
from tests.saving import is_same

EPOCH = 4 * 16


def trained(*hooks: object, epochs: int = 6) -> SelfPlayTrainer:
    config = SelfPlayConfig(
        game=GameConfig(name="tic_tac_toe", num_envs=4),
        network=NetworkConfig(kind="layers", hidden=(8,)),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, update_epochs=1, gamma=1.0),
    )
    trainer = build_trainer(config, hooks=list(hooks), seed=1)
    trainer.train(epochs * EPOCH)
    return trainer


def test_the_newest_games_are_kept(tmp_path: Path) -> None:
    trained(GameReplayHook(tmp_path, "every 1 epochs", keep=3))

    kept = ReplayFolder(tmp_path).all()

    assert [each.about["env_steps"] for each in kept] == [4 * EPOCH, 5 * EPOCH, 6 * EPOCH]
    last = read_replay(kept[-1].path)
    assert last.about["kind"] == "game"
    assert last.about["end"] in ("first_win", "second_win", "draw")
    assert 5 <= last.steps <= 9


def test_the_end_of_a_run_is_kept_whatever_the_schedule(tmp_path: Path) -> None:
    trained(GameReplayHook(tmp_path, "every 1000 epochs"))

    assert [each.about["env_steps"] for each in ReplayFolder(tmp_path).all()] == [6 * EPOCH]


def test_training_goes_the_same_way_with_and_without_them(tmp_path: Path) -> None:
    one, other = trained(GameReplayHook(tmp_path, "every 1 epochs")), trained()

    assert is_same(one.workload.state_dict(), other.workload.state_dict())


def league() -> LeagueHook:
    return LeagueHook(League("tic_tac_toe", games=4, opponents=("random", "greedy")), "every 3 epochs")


def test_the_last_game_of_each_match_is_kept_beside_those_of_training(tmp_path: Path) -> None:
    trained(league(), GameReplayHook(tmp_path, "every 2 epochs", keep=3))

    kept = ReplayFolder(tmp_path).all()

    matches = [each for each in kept if each.about.get("opponent")]
    assert [each.name for each in matches] == [
        f"{6 * EPOCH:012d}-match-{who}" for who in ("epoch-3", "greedy", "random")
    ]
    assert [each.about["env_steps"] for each in kept if each not in matches] == [2 * EPOCH, 4 * EPOCH, 6 * EPOCH]
    for each in matches:
        about = read_replay(each.path).about
        assert {about["first"], about["second"]} in (
            {"X (epoch-6)", f"O ({about['opponent']})"}, {f"X ({about['opponent']})", "O (epoch-6)"},
        )  # fmt: skip
        assert about["player"] == "epoch-6"
        assert about["end"] in ("first_win", "second_win", "draw")


def test_matches_are_left_out_if_they_are_not_wanted(tmp_path: Path) -> None:
    trained(league(), GameReplayHook(tmp_path, "every 3 epochs", matches=False))

    assert len(ReplayFolder(tmp_path).all()) == 2


def test_a_league_goes_the_same_way_whether_its_games_are_kept_or_not(tmp_path: Path) -> None:
    kept, plain = league(), league()
    one, other = trained(kept, GameReplayHook(tmp_path, "every 1 epochs")), trained(plain)

    assert is_same(one.workload.state_dict(), other.workload.state_dict())
    assert is_same(kept.state_dict(), plain.state_dict())


def test_a_disk_that_fails_ends_the_keeping_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    trainer = trained(GameReplayHook(tmp_path / "file" / "replays", "every 1 epochs"))

    assert trainer.state.clocks.env_steps == 6 * EPOCH
    assert trainer.state.failures["game_replays"].is_disabled


def test_a_run_without_games_keeps_nothing(tmp_path: Path) -> None:
    hooks = HookManager()
    hooks.add(GameReplayHook(tmp_path / "replays", "every 1 epochs"))

    TrainingLoop(ToyWorkload(), hooks).run()

    assert not (tmp_path / "replays").exists()


def test_at_least_one_is_kept(tmp_path: Path) -> None:
    with pytest.raises(RegistrationError, match="at least 1, got keep=0"):
        GameReplayHook(tmp_path, keep=0)
