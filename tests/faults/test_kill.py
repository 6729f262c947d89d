"""Kill a run at any instant, start it again, and it is the run that would have been."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.faults.dying_disk import DIVISIBLE, DyingDisk, Instant, Moment
from tests.faults.endings import ending, require_same
from tests.faults.killing import WORKLOADS, Build, Campaign, Tally, leftovers, toy, train
from tests.faults.processes import fork, warm_up

WRITERS = {"synchronous": False, "asynchronous": True}


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    for workload, build in WORKLOADS.items():
        folder = tmp_path_factory.mktemp("warm") / workload
        warm_up(lambda build=build, folder=folder: train(build, folder, asynchronous=True))


@pytest.mark.parametrize("kills", [12, pytest.param(400, marks=[pytest.mark.faults, pytest.mark.timeout(1800)])])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_run_killed_at_random_instants_ends_as_if_nobody_had_killed_it(
    writer: str, kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    total = Tally()
    # In the short version each workload is saved by one of the writers.
    chosen = list(WORKLOADS.items())[list(WRITERS).index(writer) :: 2 if kills < 100 else 1]
    for seed, (workload, build) in enumerate(chosen):
        campaign = Campaign(build, tmp_path / workload, asynchronous=WRITERS[writer], seed=seed)
        tally = campaign.run(kills // len(chosen) + (seed < kills % len(chosen)))
        total += tally
        _show(capsys, f"{writer} writer, {workload}: {tally}")

    assert total.kills == kills
    # With few kills chance decides how many of them meet a write; each call of a write is met further down.
    assert total.in_writes >= kills // 100


def _show(capsys: pytest.CaptureFixture[str], line: str) -> None:
    with capsys.disabled():
        print(f"\n{line}", end="")  # noqa: T201  # the counts are half of what the test is for


def calls_of_a_whole_run(build: Build, folder: Path, *, asynchronous: bool) -> list[str]:
    """Train in a process that nobody kills and return the calls its disk has seen."""
    seen = folder.with_suffix(".json")

    def work() -> None:
        disk = DyingDisk()
        train(build, folder, asynchronous=asynchronous, disk=disk)
        seen.write_text(json.dumps(disk.calls))

    child = fork(work, folder.with_suffix(".txt"))
    assert child.code() == 0, child.output
    return json.loads(seen.read_text())


# What is on the disk after one call is what is there before the next: only the long version looks at both.
@pytest.mark.parametrize(
    "moment", ["halfway", *(pytest.param(moment, marks=pytest.mark.faults) for moment in ("before", "after"))]
)
def test_a_run_killed_at_any_call_to_the_disk_ends_as_if_nobody_had_killed_it(moment: Moment, tmp_path: Path) -> None:
    def build(hooks: list[object]) -> object:
        return toy(hooks, epochs=3)  # the third save prunes, and the final one

    whole = tmp_path / "whole"
    calls = calls_of_a_whole_run(build, whole, asynchronous=False)
    assert calls.count("rename") == 4 + 2
    half_done = 0

    for number, call in enumerate(calls):
        if moment == "halfway" and call not in DIVISIBLE:
            continue
        folder, output = tmp_path / f"run-{number}", tmp_path / f"run-{number}.txt"
        disk = DyingDisk(Instant(number, moment))
        killed = fork(partial(train, build, folder, asynchronous=False, disk=disk), output)
        assert killed.code() == -9, f"{moment} {number} ({call}): {killed.output}"
        half_done += bool(leftovers(folder))

        train(build, folder, asynchronous=False)

        require_same(ending(folder), ending(whole))
        assert leftovers(folder) == []
    assert half_done >= 4


@pytest.mark.parametrize("every", [20, pytest.param(8, marks=pytest.mark.faults)])
@pytest.mark.parametrize("workload", [name for name in WORKLOADS if name != "toy"])
def test_any_workload_killed_within_one_save_ends_as_if_nobody_had_killed_it(
    workload: str, every: int, tmp_path: Path
) -> None:
    build, whole = WORKLOADS[workload], tmp_path / "whole"
    calls = calls_of_a_whole_run(build, whole, asynchronous=True)
    saves = [number for number, call in enumerate(calls) if call == "make_folder"]
    for number in range(saves[-3], saves[-2], every):  # with what it prunes
        folder, output = tmp_path / f"run-{number}", tmp_path / f"run-{number}.txt"
        disk = DyingDisk(Instant(number, "before"))
        killed = fork(partial(train, build, folder, asynchronous=True, disk=disk), output)
        assert killed.code() == -9, killed.output

        going_on = fork(partial(train, build, folder, asynchronous=True), output)

        assert going_on.code() == 0, going_on.output
        require_same(ending(folder), ending(whole))
