"""Importing hookloop and asking it for help stay light: proved in fresh processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hookloop.boards import Board, GameSnapshot, GameView, snapshot_bytes
from hookloop.replays import write_replay
from hookloop.runs.folder import RunConfig, RunFolder
from tests.unit.replays.episodes import episode

HEAVY = ("torch", "numpy", "gymnasium", "sqlalchemy", "pydantic", "yaml", "rich", "cyclopts")


def modules_after(program: str) -> set[str]:
    finished = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print('\\n'.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(finished.stdout.splitlines())


def test_importing_hookloop_imports_nothing_heavy() -> None:
    assert not modules_after("import hookloop") & set(HEAVY)


def test_the_core_needs_the_standard_library_alone() -> None:
    loaded = modules_after("import hookloop.core, hookloop.core.registry, hookloop.testing")

    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"hookloop", "__main__"}
    assert {name for name in foreign if not name.startswith(("_", "site", "sitecustomize"))} == set()


@pytest.mark.parametrize("name", ["CheckpointHook", "CheckpointManager"])
def test_the_public_names_of_checkpoints_bring_no_torch(name: str) -> None:
    assert not modules_after(f"from hookloop import {name}") & {"torch", "numpy", "gymnasium", "upath"}


def test_the_settings_of_a_rollout_worker_bring_no_torch() -> None:
    settings = "GymnasiumSourceConfig, ReplayBufferConfig, Rollout, WorkerConfig"

    assert not modules_after(f"from hookloop.worker import {settings}") & {"torch", "numpy", "gymnasium"}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["hooks"], ["hooks", "--json"], ["doctor"], ["train", "--help"], ["recipes"],
     ["config", "cartpole"], ["config", "arithmetic"], ["checkpoints", "--help"], ["export", "--help"],
     ["import", "--help"], ["watch", "--help"], ["watchdog", "--help"], ["sync", "--help"], ["runs"],
     ["runs", "--help"], ["runs", "show", "--help"], ["plot", "--help"], ["report", "--help"],
     ["eval", "--help"], ["eval-worker", "--help"], ["replay", "--help"], ["dash", "--help"],
     ["sample", "--help"], ["predict", "--help"], ["play", "--help"], ["ratings", "--help"]],
)  # fmt: skip
def test_reading_commands_do_not_import_torch_or_numpy(arguments: list[str]) -> None:
    loaded = modules_after(f"from hookloop.cli.main import run; assert run({arguments!r}) == 0")

    assert not loaded & {"torch", "numpy", "gymnasium"}


def test_watching_a_run_does_not_import_torch_or_numpy(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "mine")
    folder.write_config(RunConfig("connect4", 0, 1, {}, workload="selfplay"))
    folder.game_file.write_bytes(snapshot_bytes(GameSnapshot(view=GameView(game="go", board=Board()), wall_time=0.0)))
    words = ["watch", "mine", "--once", "--json", "--runs-dir", str(tmp_path)]

    loaded = modules_after(f"from hookloop.cli.main import run; assert run({words!r}) == 0")

    assert not loaded & {"torch", "numpy", "gymnasium", "pyspiel"}


def test_the_dashboard_looks_at_runs_without_torch_or_numpy(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the dashboard is not installed: pip install 'hookloop[dashboard]'")
    RunFolder(tmp_path / "mine").write_config(RunConfig("connect4", 0, 1, {}, workload="selfplay"))

    loaded = modules_after(
        "from pathlib import Path; import hookloop.cli.dash, hookloop.dashboard.server as server;"
        f"looks = server.Looks(Path({str(tmp_path)!r})); looks.runs(); looks.view('mine')"
    )

    assert not loaded & {"torch", "numpy", "gymnasium", "pyspiel"}


def test_a_replay_is_shown_and_made_a_page_without_torch(tmp_path: Path) -> None:
    write_replay(tmp_path / "one.replay", episode())
    words = ["replay", str(tmp_path / "one.replay")]
    page = [*words, "--to", str(tmp_path / "one.html")]

    loaded = modules_after(f"from hookloop.cli.main import run; assert run({words!r}) == run({page!r}) == 0")

    assert not loaded & {"torch", "gymnasium", "sqlalchemy"}


def test_training_starts_without_the_compiler_and_what_it_brings(tmp_path: Path) -> None:
    words = ["train", "cartpole", "total_env_steps=100", "--runs-dir", str(tmp_path), "--display", "off"]

    loaded = modules_after(f"from hookloop.cli.main import run; assert run({words!r}) == 0")

    assert not loaded & {"sympy", "torch._dynamo", "torch._inductor", "yaml", "envpool"}


def test_a_recipe_of_supervised_learning_can_be_read_without_torch() -> None:
    loaded = modules_after("from hookloop.recipes.supervised import charlm, digits; charlm(), digits()")

    assert not loaded & {"torch", "numpy", "yaml", "sklearn"}
