"""The commands that read what runs have measured."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hookloop.cli.main import run
from hookloop.errors import StatsError
from hookloop.stats import StatsReader
from tests.waiting import wait_until

QUICK = ("total_env_steps=2000", "env.num_envs=8", "trainer.num_minibatches=2", "--display", "off")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("first", "second"):
        assert run(["train", "cartpole", *QUICK, "--run", name, "--runs-dir", str(folder)]) == 0
    return folder


@contextmanager
def training(folder: Path, name: str, *settings: str) -> Generator[subprocess.Popen[bytes]]:
    """Train in a process of its own, from when the first epoch is in the statistics."""
    words = [
        "train",
        "cartpole",
        *QUICK[1:],
        "stop_at_return=null",
        *settings,
        "--run",
        name,
        "--runs-dir",
        str(folder),
    ]
    process = subprocess.Popen([sys.executable, "-m", "hookloop", *words], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: has_epochs(folder / name) or process.poll() is not None)
        assert has_epochs(folder / name)
        yield process
    finally:
        process.kill()
        process.wait()


def has_epochs(folder: Path) -> bool:
    file = folder / "stats.sqlite"
    if not file.exists():
        return False
    try:
        with StatsReader(file) as reader:
            return bool(reader.sql("SELECT 1 FROM epochs LIMIT 1"))
    except StatsError:
        return False  # it is being made


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_runs_are_listed_with_how_they_stand(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "runs", "--runs-dir", str(runs))

    assert code == 0
    assert [line.split()[:4] for line in out.splitlines()[1:]] == [
        ["first", "cartpole", "0", "completed"],
        ["second", "cartpole", "0", "completed"],
    ]
    listed = json.loads(say(capsys, "runs", "--runs-dir", str(runs), "--json")[1])
    assert listed[0]["steps"] >= 2000


def test_no_runs_yet_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(capsys, "runs", "--runs-dir", str(tmp_path))[:2] == (0, f"no run in {tmp_path} yet\n")


def test_metrics_are_shown_with_their_curves_and_as_csv_and_json(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = say(capsys, "metrics", "first", "return/mean", "--runs-dir", str(runs))[1].splitlines()
    assert table[0].split() == ["metric", "last", "min", "max", "steps", "curve"]
    assert "█" in table[1]

    rows = list(csv.DictReader(io.StringIO(say(capsys, "metrics", "first", "--csv", "--runs-dir", str(runs))[1])))
    points = json.loads(say(capsys, "metrics", "first", "return/mean", "--json", "--runs-dir", str(runs))[1])
    means = [float(row["value"]) for row in rows if row["key"] == "return/mean"]
    assert means == [point["value"] for point in points["return/mean"]]


def test_an_unknown_metric_is_refused_with_the_nearest(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = say(capsys, "metrics", "first", "return/meen", "--runs-dir", str(runs))

    assert code == 2
    assert "There is no metric 'return/meen' in the run 'first'. Did you mean 'return/mean'?" in err


def test_a_query_reads_and_cannot_write(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "query", "first", "SELECT count(*) AS n FROM epochs", "--runs-dir", str(runs))
    assert (code, out.split()[0]) == (0, "n")

    code, _, err = say(capsys, "query", "first", "DELETE FROM points", "--runs-dir", str(runs))
    assert code == 2
    assert "only read" in err


def test_a_query_without_a_run_asks_the_latest(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = say(capsys, "query", "SELECT name FROM runs", "--runs-dir", str(runs))

    assert (code, out) == (0, "name\nsecond\n")
    assert err == "asking the latest run, second\n"


def test_a_run_is_shown_with_what_differs_what_it_keeps_and_what_to_do_next(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = say(capsys, "runs", "show", "fir", "--runs-dir", str(runs))

    assert code == 0
    assert "run       first (cartpole, seed 0)\nstatus    completed\n" in out
    assert "  total_env_steps 300000 -> 2000\n" in out
    assert "its start" in out
    assert "final, best" in out
    assert out.endswith(f"  hookloop report {runs}/first\n  hookloop train cartpole --seed 1\n")
    found = json.loads(say(capsys, "runs", "show", "first", "--json", "--runs-dir", str(runs))[1])
    assert found["clocks"]["env_steps"] >= 2000
    assert found["score"]["best"] >= found["score"]["last"]
    assert found["settings"]["env"]["num_envs"] == 8
    assert [each["outcome"] for each in found["attempts"]] == ["completed"]


def test_two_runs_are_compared_by_settings_and_curves(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    words = ["--run", "other", "--seed", "3", "--runs-dir", str(tmp_path)]
    assert run(["train", "cartpole", *QUICK, "losses.ppo.clip=0.3", *words]) == 0

    code, out, _ = say(capsys, "runs", "diff", "first", str(other), "--runs-dir", str(runs))
    assert code == 0
    assert out.startswith("seed 0 -> 3\nlosses.ppo.clip 0.2 -> 0.3\n\nmetric ")
    row = next(line for line in out.splitlines() if line.startswith("return/mean"))
    assert len(row.split()) == 6  # the metric, two last values, the change, two curves
    compared = json.loads(say(capsys, "runs", "diff", "first", str(other), "--json", "--runs-dir", str(runs))[1])
    assert compared["settings"][-1] == {"setting": "losses.ppo.clip", "a": 0.2, "b": 0.3}

    assert "the settings are the same" in say(capsys, "runs", "diff", "first", "second", "--runs-dir", str(runs))[1]


def test_the_costs_of_the_hooks_of_a_run_are_told_the_dearest_first(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = say(capsys, "hooks", "--run", "first", "--runs-dir", str(runs))

    assert code == 0
    assert out.splitlines()[0].split() == ["hook", "event", "calls", "total", "mean", "max", "share"]
    assert "of the time" in out.splitlines()[-1]
    found = json.loads(say(capsys, "hooks", "GoalHook", "--run", "first", "--json", "--runs-dir", str(runs))[1])
    totals = [each["total_seconds"] for each in found["costs"]]
    assert totals == sorted(totals, reverse=True)
    assert {each["hook"] for each in found["costs"]} == {"GoalHook"}
    assert all(0 <= each["share"] < 1 and each["mean_seconds"] <= each["max_seconds"] for each in found["costs"])
    assert found["failures"] == []
    code, _, err = say(capsys, "hooks", "GoalHok", "--run", "first", "--runs-dir", str(runs))
    assert (code, err) == (2, "error: There is no hook 'GoalHok' in the run 'first'. Did you mean 'GoalHook'?\n")


def test_tags_are_listed_filtered_and_seen_by_queries(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--runs-dir", str(runs))

    assert say(capsys, "runs", "tag", "first", "good", "old", *where)[:2] == (0, "first: good old\n")
    assert say(capsys, "runs", "tag", "first", "old", "--remove", *where)[:2] == (0, "first: good\n")

    listed = [each["run"] for each in json.loads(say(capsys, "runs", "--tag", "good", "--json", *where)[1])]
    assert listed == ["first"]
    assert say(capsys, "runs", "--status", "failed", *where)[1] == "none of the 2 runs is like that\n"
    assert say(capsys, "query", "first", "SELECT tags FROM runs", *where)[1] == 'tags\n["good"]\n'
    assert say(capsys, "runs", "tag", "first", "../x", *where)[0] == 2


# Without what depends on how long a step takes, two runs have the same rows.
UNTIMED = ("metrics.times_every=never", "metrics.monitor_seconds=null")


def test_tagging_a_run_that_trains_leaves_its_bits_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = 0
    for name in ("alone", "tagged"):
        with training(tmp_path, name, "total_env_steps=30000", *UNTIMED) as process:
            while name == "tagged" and (not count or process.poll() is None):
                assert say(capsys, "runs", "tag", name, f"tag{count}", "--runs-dir", str(tmp_path))[2] == ""
                count += 1
            assert process.wait(timeout=60) == 0

    alone, tagged = (
        say(capsys, "metrics", name, "--csv", "--runs-dir", str(tmp_path))[1].splitlines()
        for name in ("alone", "tagged")
    )
    assert [without_seconds(line) for line in alone] == [without_seconds(line) for line in tagged]
    assert count > 0
    row = json.loads(say(capsys, "query", "tagged", "SELECT tags FROM runs", "--json", "--runs-dir", str(tmp_path))[1])
    assert sorted(json.loads(row[0]["tags"])) == sorted(f"tag{k}" for k in range(count))


def without_seconds(line: str) -> list[str]:
    key, epoch, env_steps, optimizer_steps, _, value = line.split(",")
    return [key, epoch, env_steps, optimizer_steps, value]


def test_a_run_that_trains_is_shown_so_and_not_removed_and_a_killed_one_is_called_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--runs-dir", str(tmp_path))
    with training(tmp_path, "live", "total_env_steps=100000000") as process:
        assert json.loads(say(capsys, "runs", "--status", "running", "--json", *where)[1])[0]["run"] == "live"
        code, _, err = say(capsys, "runs", "rm", "live", "--yes", *where)
        assert code == 75
        assert f"process {process.pid} " in err
        costs = json.loads(say(capsys, "hooks", "--run", "live", "--json", *where)[1])["costs"]
        assert all(0 < each["share"] < 1 for each in costs if each["total_seconds"] > 0)
        process.send_signal(signal.SIGKILL)
        process.wait()

    code, out, _ = say(capsys, "runs", "show", "latest", *where)
    assert "status    killed\n" in out
    assert out.endswith(f"next\n  hookloop train --resume {tmp_path}/live\n")
    assert say(capsys, "runs", "rm", "live", "--yes", *where)[:2] == (0, f"removed {tmp_path}/live\n")
    assert list(tmp_path.iterdir()) == []


def test_only_runs_in_the_folder_of_runs_are_removed_and_links_are_not_followed(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, precious = tmp_path / "runs", tmp_path / "precious"
    precious.mkdir()
    (precious / "config.json").write_text("{}")
    (precious / "data").write_text("dear")
    folder.mkdir()
    (folder / "link").symlink_to(precious)
    assert run(["train", "cartpole", *QUICK, "--run", "inner", "--runs-dir", str(folder)]) == 0
    (folder / "inner" / "away").symlink_to(precious)
    (folder / ".removed-1").mkdir()
    (folder / ".removed-1" / "half").touch()  # a kill left it
    (folder / ".removed-2").symlink_to(precious)
    where = ("--yes", "--runs-dir", str(folder))

    for name in ("link", "../precious", str(precious), "..", ".", "inne", "latest", str(folder / "link")):
        assert say(capsys, "runs", "rm", "inner", name, *where)[0] == 2, name
    assert {"inner", "link"} <= {file.name for file in folder.iterdir()}
    assert say(capsys, "runs", "rm", str(folder / "inner"), *where)[0] == 0

    assert sorted(file.name for file in folder.iterdir()) == [".removed-2", "link"]
    assert (precious / "data").read_text() == "dear"


def test_removing_asks_on_a_terminal_and_is_refused_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", "cartpole", *QUICK, "--run", "one", "--runs-dir", str(tmp_path)]) == 0
    words = [sys.executable, "-m", "hookloop", "runs", "rm", "one", "--runs-dir", str(tmp_path)]

    silent = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (silent.returncode, silent.stderr) == (
        2, "error: Nobody is here to ask whether to remove one; add --yes.\n"
    )  # fmt: skip
    for answer, is_gone in (("n", False), ("y", True)):
        ours, theirs = pty.openpty()
        os.write(ours, f"{answer}\n".encode())
        asked = subprocess.run(words, stdin=theirs, capture_output=True, text=True, check=False)
        os.close(ours)
        os.close(theirs)
        assert asked.stdout.startswith("Remove one for good? [y/N] ")
        assert (tmp_path / "one").exists() is not is_gone


@pytest.mark.parametrize(
    "words",
    [("runs",), ("runs", "show", "first"), ("runs", "diff", "first", "second"), ("runs", "tag", "first"),
     ("metrics", "first"), ("query", "SELECT 1"), ("hooks", "--run", "first"), ("report", "first"),
     ("plot", "first", "--to", "curves.html"), ("plot", "first", "--to", "curves.png")],
    ids=" ".join,
)  # fmt: skip
def test_commands_that_read_do_without_torch(words: tuple[str, ...], runs: Path, tmp_path: Path) -> None:
    words = (*words, "--runs-dir", str(runs))
    program = (
        f"from hookloop.cli.main import run\nimport sys\nassert run({words!r}) == 0\nassert 'torch' not in sys.modules"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_plot_says_where_it_is_and_is_in_the_folder_of_the_run_by_default(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = say(capsys, "plot", "first", "second", "--runs-dir", str(runs))

    assert code == 0
    assert re.fullmatch(rf"wrote {runs}/first/curves\.png: [67] panels of first, second\n", out)
    assert (runs / "first" / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [(["first", "--to", "x.gif"], "--to must end in .png, .svg or .html, got 'x.gif'"),
     (["first", "fir"], "Every run is drawn once"),
     (["first", "--smooth", "0"], "--smooth must be at least 1 point, got 0"),
     (["first", "--key", "losses/ppo/valu"], "Did you mean 'losses/ppo/value'?"),
     (["first", "--x", "env_step"], "env_step")],
)  # fmt: skip
def test_a_wrong_plot_is_refused_in_a_sentence(
    words: list[str], message: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = say(capsys, "plot", *words, "--runs-dir", str(runs))

    assert code == 2
    assert message in err


@pytest.mark.parametrize(("package", "ending"), [("matplotlib", "png"), ("plotly", "html")])
def test_a_plot_without_its_package_names_the_extra(
    package: str, ending: str, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, package, None)

    code, _, err = say(capsys, "plot", "first", "--to", str(tmp_path / f"x.{ending}"), "--runs-dir", str(runs))

    assert code == 3
    assert "pip install 'hookloop[plot]'" in err
    assert list(tmp_path.iterdir()) == []
