"""Many processes at one run: one trains, the others are told by whom, and the dead hold nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookloop.cli.main import run
from hookloop.core import HookContext
from tests.faults.endings import require_same
from tests.faults.forked_commands import NEW, RESUME, Gate, end_of, finished, hookloop
from tests.faults.processes import Child, warm_up

MANY = pytest.mark.parametrize("processes", [12, pytest.param(50, marks=pytest.mark.faults)])


class Waits:
    """Trains on only when a gate is opened, so that a race is over before its winner is done."""

    name = "waits"

    def __init__(self, begun: Gate, may_go_on: Gate) -> None:
        self._begun, self._may_go_on = begun, may_go_on

    def on_epoch_end(self, ctx: HookContext) -> None:
        if ctx.state.epoch == 3:
            self._begun.open()
            self._may_go_on.wait()


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("warm"))
    warm_up(lambda: run([*NEW, "--runs-dir", folder]))


@pytest.fixture
def begun() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.close()


@pytest.fixture
def may_go_on() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.close()


def only_one_of(children: list[Child], may_go_on: Gate) -> Child:
    """Require that all but one are refused, naming that one, which trains on; return it."""
    pending = list(children)
    while len(pending) > 1:
        pending = [child for child in pending if not child.ends_within(0.01)]
    (winner,) = pending
    for child in children:
        if child is not winner:
            assert child.code() == 75, child.output
            assert re.search(rf"runs/mine is in use by process {winner.pid} on", child.output), child.output
    may_go_on.open()
    assert winner.code() == 0, winner.output
    return winner


@MANY
def test_of_many_new_runs_of_one_name_exactly_one_trains(
    processes: int, begun: Gate, may_go_on: Gate, tmp_path: Path
) -> None:
    hook = Waits(begun, may_go_on)

    children = [hookloop(*NEW, cwd=tmp_path, hook=hook) for _ in range(processes)]

    only_one_of(children, may_go_on)
    (tmp_path / "alone").mkdir()
    may_go_on.open()
    finished(*NEW, cwd=tmp_path / "alone", hook=hook)
    require_same(end_of(tmp_path), end_of(tmp_path / "alone"))


@MANY
def test_of_many_resumes_of_one_run_exactly_one_trains(
    processes: int, begun: Gate, may_go_on: Gate, tmp_path: Path
) -> None:
    hook = Waits(begun, may_go_on)
    killed = hookloop(*NEW, cwd=tmp_path, hook=hook)
    begun.wait()
    assert killed.kill()

    children = [hookloop(*RESUME, cwd=tmp_path, hook=hook) for _ in range(processes)]

    only_one_of(children, may_go_on)


def test_a_new_run_is_told_that_its_name_is_in_use_while_it_is_and_that_it_is_taken_afterwards(
    begun: Gate, may_go_on: Gate, tmp_path: Path
) -> None:
    holder = hookloop(*NEW, cwd=tmp_path, hook=Waits(begun, may_go_on))
    begun.wait()

    during = finished(*NEW, cwd=tmp_path, code=75)
    may_go_on.open()
    assert holder.code() == 0, holder.output
    afterwards = finished(*NEW, cwd=tmp_path, code=2)

    assert f"is in use by process {holder.pid}" in during
    assert "There is a run 'mine' in runs already; go on with it (--resume mine)" in afterwards


def test_a_killed_holder_never_blocks(begun: Gate, may_go_on: Gate, tmp_path: Path) -> None:
    for _ in range(5):
        child = hookloop(*(RESUME if (tmp_path / "runs").exists() else NEW), cwd=tmp_path, hook=Waits(begun, may_go_on))
        begun.wait()
        assert child.kill()

    may_go_on.open()
    finished(*RESUME, cwd=tmp_path, hook=Waits(begun, may_go_on))


def test_a_folder_that_is_no_run_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "runs" / "mine"
    other.mkdir(parents=True)
    (other / "thesis.tex").write_text("chapter one")

    output = finished(*NEW, cwd=tmp_path, code=2)

    assert "is not empty and no run of ours" in output
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("leftover", [".config.json.k1ll3d", "lock"])
def test_a_run_killed_before_it_was_written_down_can_be_begun_again(leftover: str, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "mine"
    folder.mkdir(parents=True)
    (folder / leftover).write_text('{"recipe": "cart')

    finished(*NEW, cwd=tmp_path)


@pytest.mark.parametrize(
    "leftover", [".config.json.k1ll3d", ".result.json.k1ll3d", "checkpoints/.pins.json.k1ll3d", "checkpoints/.tmp-x/a"]
)
def test_what_a_kill_left_of_a_file_is_gone_after_the_next_start(leftover: str, tmp_path: Path) -> None:
    finished(*NEW, cwd=tmp_path)
    file = tmp_path / "runs" / "mine" / leftover
    file.parent.mkdir(exist_ok=True)
    file.write_text("{")

    finished(*RESUME, cwd=tmp_path)

    assert not file.exists()
