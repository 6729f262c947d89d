"""Evaluations by workers: they outlive trainers and workers that are killed, and are done once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hookloop.cli.main import run
from hookloop.errors import StatsError
from hookloop.stats import EvaluationTasks, StatsReader
from tests.evaluated_run import RUN, settings, train
from tests.postgres import running_server
from tests.waiting import PATIENCE_SECONDS, wait_until

RUN_ID = "remote-run"


def tasks_of(url: Any) -> list[tuple[str, str]]:
    with StatsReader(url) as reader:
        return [
            (row["checkpoint_id"].split("/")[1].split("@")[0], row["state"]) for row in reader.evaluation_tasks(RUN_ID)
        ]


def evaluations_of(url: Any) -> list[dict[str, Any]]:
    with StatsReader(url) as reader:
        return reader.evaluations(RUN_ID)


def file_of(runs: Path) -> Path:
    return runs / RUN / "stats.sqlite"


def test_checkpoints_that_are_due_and_the_last_are_evaluated_by_a_worker_with_their_own_clocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = train(tmp_path, epochs=5)
    asked = tasks_of(file_of(tmp_path))

    assert run(["eval-worker", str(tmp_path), "--once"]) == 0

    assert trainer.state.failures == {}
    assert [state for _, state in asked] == ["waiting"] * 3
    assert tasks_of(file_of(tmp_path)) == [(name, "done") for name, _ in asked]
    rows = evaluations_of(file_of(tmp_path))
    assert [(row["epoch"], row["after_epoch"], row["episodes"]) for row in rows] == [(2, 2, 2), (4, 4, 2), (5, 5, 2)]
    assert [row["about"]["policy_version"] for row in rows] == [2, 4, 5]
    assert capsys.readouterr().out.count("done ") == 3
    assert len(list((tmp_path / RUN / "replays").iterdir())) == 3
    # A second look finds nothing to do, and a second run of the same does not ask again.
    assert run(["eval-worker", str(tmp_path), "--once"]) == 0
    assert len(evaluations_of(file_of(tmp_path))) == 3


def test_a_worker_scores_a_checkpoint_as_the_command_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path, epochs=2)
    assert run(["eval-worker", str(tmp_path), "--once"]) == 0

    assert run(["eval", RUN, "--runs-dir", str(tmp_path), "--checkpoint", "final"]) == 0

    final = [row for row in evaluations_of(file_of(tmp_path)) if row["name"].endswith("final")]
    assert len(final) == 2
    assert final[0]["scores"] == final[1]["scores"]


def test_checkpoints_are_kept_until_they_are_evaluated(tmp_path: Path) -> None:
    train(tmp_path, epochs=5)

    names = sorted(path.name for path in (tmp_path / RUN / "checkpoints").glob("step-*"))

    # Only the last would be kept otherwise.
    assert [name for name, _ in tasks_of(file_of(tmp_path))] == names


def test_asking_workers_leaves_training_alone(tmp_path: Path) -> None:
    remote = train(tmp_path / "a", epochs=4)
    plain = train(tmp_path / "b", epochs=4, config=settings(schedule=None))

    assert torch.equal(remote.optimizer.flat, plain.optimizer.flat)


def test_a_killed_trainer_leaves_its_evaluations_which_are_done_while_it_is_down_and_after(tmp_path: Path) -> None:
    script = [sys.executable, "-m", "tests.evaluated_run", str(tmp_path), "9", "3"]
    assert subprocess.run(script, check=False, timeout=100).returncode == -signal.SIGKILL
    assert [state for _, state in tasks_of(file_of(tmp_path))] == ["waiting"]

    train(tmp_path, epochs=5)  # goes on from what was saved, with an evaluation pending
    assert run(["eval-worker", str(tmp_path), "--once"]) == 0

    assert [state for _, state in tasks_of(file_of(tmp_path))] == ["done"] * 3
    assert [row["epoch"] for row in evaluations_of(file_of(tmp_path))] == [2, 4, 5]


def test_a_killed_workers_task_is_done_by_the_next(tmp_path: Path) -> None:
    train(tmp_path, epochs=2, config=settings(schedule="never"))
    now = time.time()
    with EvaluationTasks(file_of(tmp_path), wall_time=lambda: now - 1000) as tasks:
        assert tasks.claim("killed", lease_seconds=60) is not None

    assert run(["eval-worker", str(tmp_path), "--once", "--name", "heir"]) == 0

    with StatsReader(file_of(tmp_path)) as reader:
        rows = reader.evaluation_tasks(RUN_ID)
    assert [(row["state"], row["claimed_by"], row["tries"]) for row in rows] == [("done", "heir", 2)]


def test_a_checkpoint_that_is_damaged_is_given_up_after_three_tries(tmp_path: Path) -> None:
    train(tmp_path, epochs=2, config=settings(schedule="never"))
    for file in (tmp_path / RUN / "checkpoints").glob("step-*-final/model.safetensors"):
        file.unlink()

    assert run(["eval-worker", str(tmp_path), "--once"]) == 0

    with EvaluationTasks(file_of(tmp_path)) as tasks:
        (found,) = tasks.of_run(RUN_ID, ("failed",))
    assert "Damaged" in found[1]


class GivenUp:
    """Tasks that a worker gives up as soon as they are asked for."""

    def __init__(self) -> None:
        self.keys: list[Any] = []

    def enqueue(self, key: Any, uri: str) -> bool:
        self.keys.append(key)
        return True

    def of_run(self, run_id: str, states: Any = ("waiting", "claimed")) -> list[Any]:
        return [(key, "the simulator is gone") for key in self.keys] if states == ("failed",) else []

    def close(self) -> None: ...


def test_what_a_worker_has_given_up_is_made_up_for_here_once(tmp_path: Path) -> None:
    tasks = GivenUp()

    trainer = train(tmp_path, epochs=4, open_tasks=lambda: tasks)

    failures = trainer.state.failures["RemoteEvaluationHook"]
    assert failures.count == 1
    assert "a worker has given up" in failures.last_error
    assert "the simulator is gone" in failures.last_error
    assert trainer.state.eval_scores["episodes"] == 2  # of the fourth epoch, which was evaluated here
    assert len(tasks.keys) == 2  # of the second epoch, and of the end


class NoTasks:
    """A database that is away."""

    def of_run(self, *_: object) -> list[Any]:
        return []

    def enqueue(self, *_: object) -> bool:
        raise StatsError("The tasks cannot be written: the server is away.")

    def close(self) -> None: ...


def test_a_database_that_is_away_is_counted_and_the_evaluation_is_made_here(tmp_path: Path) -> None:
    trainer = train(tmp_path, epochs=4, open_tasks=NoTasks)

    assert "server is away" in trainer.state.failures["RemoteEvaluationHook"].last_error
    assert trainer.state.eval_scores["episodes"] == 2
    assert trainer.state.outcome == "completed"


def test_too_many_that_wait_are_noticed_and_the_evaluation_is_made_here(tmp_path: Path) -> None:
    trainer = train(tmp_path, epochs=10, config=settings(schedule="every 1 epoch"))

    failures = trainer.state.failures["RemoteEvaluationHook"]
    assert "8 evaluations wait, and nobody carries them out; start 'hookloop eval-worker'" in failures.last_error


def test_a_worker_that_is_told_to_stop_gives_its_task_back(tmp_path: Path) -> None:
    train(tmp_path, epochs=1, config=settings(schedule="never", episodes=100_000, record=0))
    process = subprocess.Popen([sys.executable, "-m", "hookloop", "eval-worker", str(tmp_path)], stdout=subprocess.PIPE)
    wait_until(lambda: tasks_of(file_of(tmp_path))[0][1] == "claimed")

    process.terminate()

    assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    assert process.stdout is not None
    process.stdout.close()
    assert tasks_of(file_of(tmp_path))[0][1] == "waiting"


def test_several_workers_are_started_at_once_and_share_the_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tmp_path, epochs=4, config=settings(schedule="every 1 epoch", record=0))

    assert run(["eval-worker", str(tmp_path), "--once", "--workers", "2", "--name", "crew"]) == 0

    assert capsys.readouterr().out.count("done ") == 4
    assert [row["epoch"] for row in evaluations_of(file_of(tmp_path))] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "words", [["nowhere"], ["runs", "--lease-seconds", "0"], ["mysql://x/y", "--once"], ["runs", "--workers", "0"]]
)
def test_what_no_worker_can_work_on_is_said(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(["eval-worker", *words]) == 2


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


def test_workers_share_the_tasks_of_a_postgresql_database(server: str, tmp_path: Path) -> None:
    train(tmp_path, epochs=4, config=settings(server, schedule="every 1 epoch", record=0))
    words = [sys.executable, "-m", "hookloop", "eval-worker", server, "--once"]

    workers = [subprocess.Popen([*words, "--name", name], stdout=subprocess.PIPE, text=True) for name in ("a", "b")]
    said = [worker.communicate(timeout=100)[0] for worker in workers]

    assert [worker.returncode for worker in workers] == [0, 0]
    assert sum(text.count("done ") for text in said) == 4
    assert {state for _, state in tasks_of(server)} == {"done"}
    assert [row["epoch"] for row in evaluations_of(server)] == [1, 2, 3, 4]
