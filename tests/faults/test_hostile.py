"""Hostile runs: each is refused with an error of ours, runs no code, and touches nothing outside of its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.audited import WARM_UP
from tests.faults.command import python
from tests.faults.hostile_runs import CASES, sound_run
from tests.faults.simulated_disk import scratch_folder

PATH = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])


@pytest.fixture(scope="module")
def reports() -> Iterator[dict[str, Any]]:
    """What became of every case, each read in every way by one process under an audit hook."""
    with scratch_folder() as scratch:
        for name in (WARM_UP, "sound"):
            sound_run(scratch / name / "run")
        for number, case in enumerate(CASES.values()):
            case.tamper(sound_run(scratch / f"case-{number:03d}" / "run"))
        finished = python("-m", "tests.faults.audited", scratch, PYTHONPATH=PATH)
        assert finished.returncode == 0, finished.stderr
        assert not list(scratch.rglob("HOSTILE*"))
        yield json.loads(finished.stdout)


def test_a_sound_run_is_accepted_in_every_way_and_nothing_is_unpickled(reports: dict[str, Any]) -> None:
    assert set(reports["sound"]["ways"].values()) == {"accepted"}
    assert reports["sound"]["seen"] == []


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("number", range(len(CASES)), ids=list(CASES))
def test_a_hostile_run_is_refused_and_does_no_harm(reports: dict[str, Any], number: int) -> None:
    case = list(CASES.values())[number]
    report = reports[f"case-{number:03d}"]

    assert report["seen"] == []
    assert {way: found for way, found in report["ways"].items() if found.startswith("untyped")} == {}
    assert [way for way in case.refused_by if report["ways"][way] == "accepted"] == []
