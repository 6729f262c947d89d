"""The game of a run as a file: written while it is played, whole at any moment, and without a trace in training."""

from __future__ import annotations

import logging
import stat
import threading
from pathlib import Path

import pytest

from tests.waiting import wait_until

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop import TrainingLoop
from hookloop.boards import GameSnapshot, read_snapshot
from hookloop.errors import RegistrationError
from hookloop.hooks import GameSnapshotHook
from hookloop.rl.config import TrainerConfig
from hookloop.selfplay import GameConfig, NetworkConfig, SelfPlayConfig, SelfPlayTrainer, build_trainer
from hookloop.testing import ToyWorkload
from tests.saving import is_same

EPOCH = 4 * 16


def built(*hooks: object, **settings: object) -> SelfPlayTrainer:
    config = SelfPlayConfig(
        game=GameConfig(name="tic_tac_toe", num_envs=4),
        network=NetworkConfig(kind="layers", hidden=(8,)),
        trainer=TrainerConfig(horizon=16, num_minibatches=2, update_epochs=1, gamma=1.0),
    )
    return build_trainer(config.model_copy(update=settings), hooks=list(hooks), seed=1)


class Looking:
    """Waits at the end of every epoch until the file has been written twice: the first may have been begun before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seen: list[GameSnapshot] = []

    def on_epoch_end(self) -> None:
        self._wait_for_another()
        self.seen.append(self._wait_for_another())

    def _wait_for_another(self) -> GameSnapshot:
        before = read_snapshot(self._path)
        wait_until(lambda: read_snapshot(self._path).wall_time != before.wall_time, "nothing was written")
        return read_snapshot(self._path)


def test_the_game_is_written_while_it_is_played_and_stays_with_how_the_run_ended(tmp_path: Path) -> None:
    path, looking = tmp_path / "game.json", Looking(tmp_path / "game.json")
    trainer = built(GameSnapshotHook(path, interval_seconds=0.002), looking)

    trainer.train(3 * EPOCH)

    assert [each.status for each in looking.seen] == ["running"] * 3
    assert [each.env_steps for each in looking.seen] == [EPOCH, 2 * EPOCH, 3 * EPOCH]
    assert [each.view.buffered for each in looking.seen] == [(16, 16)] * 3
    last = read_snapshot(path)
    assert (last.status, last.env_steps) == ("completed", 3 * EPOCH)
    assert last.view == trainer.watch_game().look()
    assert last.view.games == trainer.tally.games > 0
    assert [file.name for file in tmp_path.iterdir()] == ["game.json"]
    assert not any(thread.name == "hookloop-game-snapshot" for thread in threading.enumerate())


def test_others_may_read_it_as_any_file(tmp_path: Path) -> None:
    (tmp_path / "any").touch()

    built(GameSnapshotHook(tmp_path / "game.json")).train(EPOCH)

    assert stat.S_IMODE((tmp_path / "game.json").stat().st_mode) == stat.S_IMODE((tmp_path / "any").stat().st_mode)


def test_training_goes_the_same_way_with_and_without_it(tmp_path: Path) -> None:
    one, other = built(GameSnapshotHook(tmp_path / "game.json", 1e-4)), built()
    for trainer in (one, other):
        trainer.train(6 * EPOCH)

    assert is_same(one.workload.state_dict(), other.workload.state_dict())


def test_games_that_are_played_as_tasks_are_written_too(tmp_path: Path) -> None:
    hook = GameSnapshotHook(tmp_path / "game.json")

    trainer = built(hook, workers=0, slots=2)
    trainer.train(2 * EPOCH)

    view = read_snapshot(tmp_path / "game.json").view
    assert view.games == trainer.tally.games > 0
    assert view == trainer.watch_game().look()
    assert hook.failures == 0


def test_a_run_that_fails_says_so(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError("no route")

    trainer = built(GameSnapshotHook(tmp_path / "game.json"))
    trainer.hooks.add(fail, name="fail", on="epoch_end", on_error="raise")

    with pytest.raises(OSError, match="no route"):
        trainer.train(EPOCH)

    assert read_snapshot(tmp_path / "game.json").status == "failed"


def test_a_disk_that_refuses_is_told_once_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "run").write_text("in the way")
    hook = GameSnapshotHook(tmp_path / "run" / "game.json", interval_seconds=60)

    with caplog.at_level(logging.WARNING, logger="hookloop.hooks"):
        trainer = built(hook)
        trainer.hooks.add((tmp_path / "run").unlink, name="tidy", on="epoch_end")
        trainer.train(EPOCH)

    assert trainer.state.clocks.env_steps == EPOCH
    assert hook.failures == 1
    assert [record.message[:28] for record in caplog.records] == ["the game cannot be written f"]
    assert read_snapshot(tmp_path / "run" / "game.json").status == "completed"


def test_a_run_without_games_has_no_file(tmp_path: Path) -> None:
    TrainingLoop(ToyWorkload(), [GameSnapshotHook(tmp_path / "game.json")]).run()

    assert list(tmp_path.iterdir()) == []


def test_an_interval_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(RegistrationError, match="interval_seconds must be above 0"):
        GameSnapshotHook(interval_seconds=0)
