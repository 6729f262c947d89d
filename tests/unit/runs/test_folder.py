from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookloop.errors import ConfigError
from hookloop.monitoring import Heartbeat
from hookloop.runs.folder import RunConfig, RunFolder, all_runs, find_run


def make_run(runs_dir: Path, name: str, made: float = 1000.0) -> RunFolder:
    folder = RunFolder(runs_dir / name)
    folder.write_config(RunConfig("cartpole", 0, 1, {}))
    os.utime(folder.path / "config.json", (made, made))
    return folder


def test_a_run_is_found_by_name_path_and_the_beginning_of_its_name(tmp_path: Path) -> None:
    make_run(tmp_path, "brave-otter")
    make_run(tmp_path, "calm-heron")

    for name in ("calm-heron", str(tmp_path / "calm-heron"), "calm", "c"):
        assert find_run(tmp_path, name).name == "calm-heron"


def test_a_whole_name_is_no_beginning_of_another(tmp_path: Path) -> None:
    make_run(tmp_path, "clip")
    make_run(tmp_path, "clip03")

    assert find_run(tmp_path, "clip").name == "clip"


def test_a_beginning_of_several_names_is_refused_with_them(tmp_path: Path) -> None:
    make_run(tmp_path, "clip02")
    make_run(tmp_path, "clip03")

    with pytest.raises(ConfigError, match="'clip' begins the names of 2 runs: clip02, clip03"):
        find_run(tmp_path, "clip")


def test_of_many_candidates_some_are_named(tmp_path: Path) -> None:
    for k in range(13):
        make_run(tmp_path, f"x{k:02}")

    with pytest.raises(ConfigError, match="x09 and 3 more"):
        find_run(tmp_path, "x")


def test_nothing_and_a_misspelt_name_begin_no_run(tmp_path: Path) -> None:
    make_run(tmp_path, "first")

    with pytest.raises(ConfigError, match=r"no run 'frist'\. Did you mean 'first'"):
        find_run(tmp_path, "frist")
    with pytest.raises(ConfigError, match=r"no run 'latest'\. There is none in"):
        find_run(tmp_path / "empty", "latest")
    make_run(tmp_path / "one", "first")
    with pytest.raises(ConfigError, match="no run ''"):
        find_run(tmp_path / "one", "")


def test_the_latest_run_is_the_one_that_was_made_last(tmp_path: Path) -> None:
    make_run(tmp_path, "b-old", made=1000.0)
    make_run(tmp_path, "a-new", made=2000.0)

    assert find_run(tmp_path, "latest").name == "a-new"


def test_the_latest_run_is_the_one_whose_process_began_last(tmp_path: Path) -> None:
    resumed = make_run(tmp_path, "resumed", made=1000.0)
    make_run(tmp_path, "damaged", made=3000.0).heartbeat_file.write_text("no heartbeat")
    Heartbeat(resumed.heartbeat_file).beat()

    assert find_run(tmp_path, "latest").name == "resumed"


def test_a_run_called_latest_is_found_by_its_name(tmp_path: Path) -> None:
    make_run(tmp_path, "latest", made=1000.0)
    make_run(tmp_path, "newer", made=2000.0)

    assert find_run(tmp_path, "latest").name == "latest"


def test_what_is_being_removed_is_no_run(tmp_path: Path) -> None:
    make_run(tmp_path, ".removed-x")

    assert all_runs(tmp_path) == []
