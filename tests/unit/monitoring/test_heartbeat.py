"""Heartbeats: what the file says, and what a watcher makes of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hookloop.errors import HeartbeatError, RegistrationError
from hookloop.monitoring import Beat, Heartbeat, PhaseTrace, Verdict, read_beat, watch_heartbeat
from hookloop.monitoring.heartbeat import TOUCHED_FILE_VARIABLE


class Wall:
    """Monotonic seconds that move when somebody sleeps."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.then: list[Callable[[], None]] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for act in self.then:
            act()


class Run:
    """A run of this process, with a heartbeat that beats when told to."""

    def __init__(self, tmp_path: Path, **seen: Any) -> None:
        self.wall = Wall()
        self.seen: dict[str, Any] = {"clocks": {"epochs": 0, "seconds": 0.0}, **seen}
        self.trace = PhaseTrace(lambda: int(self.wall.now * 1e9))
        self.path = tmp_path / "run" / "heartbeat.json"
        self.said: list[str] = []
        self.heart = Heartbeat(self.path, 1.0, trace=self.trace, look=lambda: self.seen, rank=2, monotonic=self.wall)

    def beat(self) -> Beat:
        self.heart.beat()
        return read_beat(self.path)

    def watch(self, timeout: float = 10.0, **options: Any) -> Verdict:
        return watch_heartbeat(
            self.path, timeout, say=self.said.append, monotonic=self.wall, sleep=self.wall.sleep, **options
        )


def test_the_file_says_who_what_and_since_when(tmp_path: Path) -> None:
    run = Run(tmp_path, event="epoch_end", hook="save")
    run.trace.reset("epoch")
    run.wall.now += 5.0
    run.trace.enter("rollout")
    run.wall.now += 2.0

    beat = run.beat()

    assert (beat.pid, beat.host, beat.rank) == (os.getpid(), os.uname().nodename, 2)
    assert (beat.phase, beat.phase_since, beat.monotonic) == ("epoch/rollout", 1005.0, 1007.0)
    assert (beat.event, beat.hook, beat.clocks["epochs"]) == ("epoch_end", "save", 0)
    assert beat.words == "epoch/rollout, hook 'save' at epoch_end"
    assert os.listdir(run.path.parent) == ["heartbeat.json"]


def test_progress_is_when_a_clock_a_phase_or_a_hook_last_moved(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.beat().progress == 1000.0
    run.wall.now += 5.0
    run.seen = {"clocks": {"epochs": 0, "seconds": 5.0}}
    assert run.beat().progress == 1000.0  # time passes by itself

    for change in ({"clocks": {"epochs": 1}}, {"hook": "save"}, {"call": 7}):
        run.seen = {**run.seen, **change}
        run.wall.now += 5.0
        assert run.beat().progress == run.wall.now
    run.trace.reset("epoch")
    run.wall.now += 5.0
    assert run.beat().progress == run.wall.now


def test_the_file_named_by_the_environment_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched = tmp_path / "alive"
    monkeypatch.setenv(TOUCHED_FILE_VARIABLE, str(touched))
    heart = Heartbeat(None)
    heart.beat()
    os.utime(touched, (0, 0))

    heart.beat()

    assert touched.stat().st_mtime > 1e9


def test_a_disk_that_refuses_is_counted_and_tried_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    (tmp_path / "run").write_text("a file where a folder should be")
    run.heart.beat()
    run.heart.beat()
    assert run.heart.failures == 2

    (tmp_path / "run").unlink()

    assert run.beat().rank == 2


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1}', "[" * 100_000])
def test_a_file_that_is_no_heartbeat_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "heartbeat.json"
    path.write_text(content)

    with pytest.raises(HeartbeatError, match="is no heartbeat"):
        read_beat(path)


def test_a_heartbeat_with_values_of_another_kind_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.path.parent.mkdir()
    run.path.write_text(json.dumps({**asdict(run.heart.read()), "pid": "12"}))

    with pytest.raises(HeartbeatError, match="no heartbeat of this hookloop"):
        read_beat(run.path)


def test_one_look_says_what_a_run_is_doing(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.trace.reset("start-up")
    run.beat()

    verdict = run.watch(once=True)

    assert verdict.ending == "running"
    assert verdict.words.endswith("is in start-up")


def test_a_run_that_beats_and_moves_is_left_alone_until_it_ends(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.beat()

    def live() -> None:
        run.seen = {"clocks": {"epochs": run.wall.now}}
        run.heart.beat("completed" if run.wall.now > 1050 else None)

    run.wall.then.append(live)

    assert run.watch(policy="kill").ending == "ended"
    assert run.said == []


def test_a_run_that_beats_but_does_not_move_hangs(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.wall.then.append(run.heart.beat)
    run.beat()
    for _ in range(11):
        run.wall.sleep(1.0)

    verdict = run.watch(once=True)

    assert verdict.ending == "hung"
    assert "has not moved for 11.0 s (timeout 10 s)" in verdict.words


def test_a_run_that_does_not_beat_hangs(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.beat()
    run.wall.now += 11.0

    assert "has not beaten for 11.0 s" in run.watch(once=True).words


def test_a_warning_is_given_once_and_again_after_the_run_has_moved(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.beat()

    def live() -> None:
        if run.wall.now in (1050.0, 1100.0):
            run.seen = {"clocks": {"epochs": run.wall.now}}
        run.heart.beat("stopped" if run.wall.now >= 1100.0 else None)

    run.wall.then.append(live)

    assert run.watch().ending == "ended"
    assert len([line for line in run.said if "has not moved" in line]) == 2


def test_a_process_that_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    run = Run(tmp_path)
    beat = run.beat()
    # The pid has gone to another process since.
    run.path.write_text(json.dumps(asdict(replace(beat, process_started=beat.process_started - 10_000))))

    verdict = run.watch(policy="kill")

    assert verdict.ending == "gone"
    assert "is gone without a word" in verdict.words


def test_a_run_on_another_host_is_judged_by_this_clock_and_not_killed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    elsewhere = replace(run.heart.read(), host="elsewhere", monotonic=5.0, progress=5.0)
    run.path.parent.mkdir()
    run.path.write_text(json.dumps(asdict(elsewhere)))

    verdict = run.watch(policy="kill")

    assert verdict.ending == "hung"
    assert verdict.words == "it runs on elsewhere, and can be ended only there"
    assert run.wall.now > 1010.0


def test_a_run_that_never_beats_is_missed_after_the_timeout(tmp_path: Path) -> None:
    run = Run(tmp_path)

    assert run.watch().ending == "missing"
    assert run.wall.now > 1010.0
    assert run.watch(once=True).ending == "missing"


def test_a_timeout_shorter_than_two_beats_means_two_beats(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.beat()
    run.wall.now += 1.5

    assert run.watch(0.1, once=True).ending == "running"


@pytest.mark.parametrize("options", [{"timeout": 0}, {"policy": "shrug"}])
def test_senseless_settings_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match="got"):
        Run(tmp_path).watch(**options)
