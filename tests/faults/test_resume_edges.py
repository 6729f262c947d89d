"""Resumes at the edges: before the first checkpoint, after the last step, from an earlier one, from elsewhere."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hookloop.checkpoints import Checkpoint, Manifest
from hookloop.checkpoints.manifest import MANIFEST
from hookloop.cli.main import run
from hookloop.core import HookContext
from tests.faults.endings import Ending, require_same
from tests.faults.forked_commands import NEW, RESUME, checkpoints, end_of, finished, hookloop
from tests.faults.processes import warm_up


class Dies:
    """Kills its own process at the end of an epoch, before the checkpoint of that epoch."""

    name = "dies"

    def __init__(self, epoch: int | None = None) -> None:
        self._epoch = epoch

    def on_epoch_end(self, ctx: HookContext) -> None:
        if ctx.state.epoch == self._epoch:
            signal.raise_signal(signal.SIGKILL)


class Counts:
    """Counts epochs and keeps the count in the checkpoints."""

    name = "counts"
    saved = ("epochs",)

    def __init__(self) -> None:
        self.epochs = 0

    def on_epoch_end(self) -> None:
        self.epochs += 1


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = str(tmp_path_factory.mktemp("warm"))
    warm_up(lambda: run([*NEW, "--runs-dir", folder]))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in one piece; every checkpoint is kept."""
    folder = tmp_path_factory.mktemp("whole")
    finished(*NEW, "checkpoints.keep_last=9", "checkpoints.asynchronous=false", cwd=folder, hook=Dies())
    return folder


@pytest.fixture(scope="module")
def expected(whole: Path) -> Ending:
    return end_of(whole)


def begin_and_die(cwd: Path, epoch: int, *settings: str) -> None:
    """Begin a run that is killed at the end of an epoch, with every checkpoint before it durable."""
    child = hookloop(*NEW, "checkpoints.asynchronous=false", *settings, cwd=cwd, hook=Dies(epoch))
    assert child.code() == -signal.SIGKILL, child.output


def describe_anew(checkpoint: Checkpoint, **changes: Any) -> None:
    """Write another manifest, sound in itself, in place of a checkpoint's own."""
    changed: Manifest = replace(checkpoint.manifest, **changes)
    (checkpoint.path / MANIFEST).write_bytes(changed.encode())


@pytest.mark.parametrize("times", [3, pytest.param(10, marks=pytest.mark.faults)])
@pytest.mark.parametrize("epoch", [1, 3], ids=["before the first checkpoint", "before the next checkpoint"])
def test_a_run_that_dies_many_times_before_it_saves_again_ends_the_same(
    epoch: int, times: int, expected: Ending, tmp_path: Path
) -> None:
    begin_and_die(tmp_path, epoch)
    before = checkpoints(tmp_path).names()
    for _ in range(times):
        finished(*RESUME, cwd=tmp_path, hook=Dies(epoch), code=-signal.SIGKILL)
        assert checkpoints(tmp_path).names() == before

    finished(*RESUME, cwd=tmp_path, hook=Dies())

    require_same(end_of(tmp_path), expected)


def test_a_run_that_is_resumed_after_every_epoch_ends_the_same(expected: Ending, tmp_path: Path) -> None:
    settings = "checkpoints.schedule=every 1 epochs"
    begin_and_die(tmp_path, 2, settings)
    for epoch in (3, 4, 5, 6, 7):
        finished(*RESUME, cwd=tmp_path, hook=Dies(epoch), code=-signal.SIGKILL)

    finished(*RESUME, cwd=tmp_path, hook=Dies())

    attempt = checkpoints(tmp_path).latest().manifest.attempt
    assert attempt == 7
    end = end_of(tmp_path)
    assert end["model.safetensors"] == expected["model.safetensors"]
    assert end["optimizer.safetensors"] == expected["optimizer.safetensors"]


def test_resuming_a_run_that_is_done_does_nothing(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    before = checkpoints(tmp_path).look_at_all()

    for _ in range(2):
        output = finished(*RESUME, cwd=tmp_path, hook=Dies())

        assert "completed" in output
        assert checkpoints(tmp_path).look_at_all() == before


def test_going_on_from_an_earlier_checkpoint_sets_the_later_ones_aside_and_ends_the_same(
    whole: Path, expected: Ending, tmp_path: Path
) -> None:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    kept, *later = checkpoints(tmp_path).sound()
    assert [each.manifest.epochs for each in later] == [4, 6, 7]

    finished(*RESUME, "--checkpoint", "epoch2", cwd=tmp_path, hook=Dies())

    require_same(end_of(tmp_path), expected)
    names = {path.name for path in checkpoints(tmp_path).folder.iterdir()}
    assert {f".superseded-{each.name}-0" for each in later} <= names
    assert kept.name in names


@pytest.mark.parametrize("form", ["{}", "file://{}"], ids=["path", "file URI"])
def test_going_on_from_a_copy_elsewhere_ends_the_same(form: str, whole: Path, expected: Ending, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "copy"
    shutil.copytree(checkpoints(whole).sound()[1].path, copy)
    begin_and_die(tmp_path, 1)

    finished(*RESUME, "--checkpoint", form.format(copy), cwd=tmp_path, hook=Dies())

    require_same(end_of(tmp_path), expected)


def test_an_interrupted_run_is_resumed_from_between_two_checkpoints(expected: Ending, tmp_path: Path) -> None:
    class Interrupts(Dies):
        def on_epoch_end(self, ctx: HookContext) -> None:
            if ctx.state.epoch == 3:
                signal.raise_signal(signal.SIGINT)

    finished(*NEW, cwd=tmp_path, hook=Interrupts(), code=130)
    assert checkpoints(tmp_path).latest().manifest.kind == "interrupted"

    finished(*RESUME, cwd=tmp_path, hook=Dies())

    require_same(end_of(tmp_path), expected)


CHANGES = {
    "harmless": (("checkpoints.keep_last=5",), 0, "checkpoints.keep_last: 3 -> 5 (harmless)"),
    "refused": (
        ("trainer.gamma=0.9",),
        2,
        "trainer.gamma: 0.98 -> 0.9 (changes training) The run would no longer be the one it was; add --force",
    ),
    "forced": (("trainer.gamma=0.9", "--force"), 0, "trainer.gamma: 0.98 -> 0.9 (changes training)"),
    "impossible": (
        ("env.num_envs=8",),
        2,
        "env.num_envs: 4 -> 8 (impossible) The saved run has the shape of the settings it began with",
    ),
    "impossible, forced": (("policy.hidden=[8]", "--force"), 2, "(impossible)"),
    "a longer run with scheduled values": (("total_env_steps=600",), 2, "400 -> 600 (changes training)"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_setting_is_shown_and_accepted_refused_or_forced(case: str, expected: Ending, tmp_path: Path) -> None:
    settings, code, words = CHANGES[case]
    begin_and_die(tmp_path, 3)

    output = " ".join(finished(*RESUME, *settings, cwd=tmp_path, hook=Dies(), code=code).split())

    assert words in output
    if code == 2:
        finished(*RESUME, cwd=tmp_path, hook=Dies())
    is_the_same = end_of(tmp_path)["model.safetensors"] == expected["model.safetensors"]
    assert is_the_same == (case != "forced")


def test_a_run_from_before_there_was_a_setting_goes_on_with_what_it_is_by_default(
    expected: Ending, tmp_path: Path
) -> None:
    begin_and_die(tmp_path, 3)
    file = tmp_path / "runs" / "mine" / "config.json"
    config = json.loads(file.read_text())
    assert config["settings"]["env"].pop("normalise_rewards") is False
    del config["settings"]["policy"]["memory"]
    file.write_text(json.dumps(config))

    output = finished(*RESUME, cwd=tmp_path, hook=Dies())

    assert "changed" not in output
    assert json.loads(file.read_text()) == config
    assert end_of(tmp_path)["model.safetensors"] == expected["model.safetensors"]


def test_a_hook_that_is_new_begins_anew_and_one_that_is_gone_is_left_out(expected: Ending, tmp_path: Path) -> None:
    begin_and_die(tmp_path, 3)
    finished(*RESUME, cwd=tmp_path, hook=Counts())
    added = end_of(tmp_path)
    shutil.rmtree(tmp_path / "runs")
    child = hookloop(*NEW, cwd=tmp_path, hook=Counts())
    assert child.code() == 0
    finished(*RESUME, "--checkpoint", "epoch4", cwd=tmp_path)
    removed = end_of(tmp_path)

    assert added["hooks/hooks/counts/state/epochs"] == "5"  # epochs 3 to 7
    assert not any(path.startswith("hooks/hooks/counts") for path in removed)
    for end in (added, removed):
        assert end["model.safetensors"] == expected["model.safetensors"]


def test_what_changed_around_the_run_is_logged_when_it_goes_on(expected: Ending, tmp_path: Path) -> None:
    begin_and_die(tmp_path, 3)
    (checkpoint,) = checkpoints(tmp_path).sound()
    environment = checkpoint.manifest.environment
    describe_anew(checkpoint, environment={**environment, "torch": "1.0.0", "threads": 64})

    output = finished(*RESUME, cwd=tmp_path, hook=Dies())

    assert "the bits may differ from here on, since something changed" in output
    assert f"threads: 64 before, {environment['threads']} now" in output
    assert f"torch: 1.0.0 before, {environment['torch']} now" in output
    require_same(end_of(tmp_path), expected)


def test_other_threads_are_logged_when_a_run_goes_on_with_them(tmp_path: Path) -> None:
    begin_and_die(tmp_path, 3)

    output = finished(*RESUME, "--threads", "2", cwd=tmp_path, hook=Dies())

    assert "threads: 1 before, 2 now" in output


def test_environments_that_cannot_be_saved_are_said_to_begin_anew(tmp_path: Path) -> None:
    pytest.importorskip("envpool")
    begin_and_die(tmp_path, 3, "env.mode=envpool")
    (checkpoint,) = checkpoints(tmp_path).sound()

    output = finished(*RESUME, cwd=tmp_path, hook=Dies())

    assert checkpoint.manifest.exactness == "learner-exact"
    assert "EnvPool" in checkpoint.manifest.inexact_because
    assert f"the resume is learner-exact: {checkpoint.manifest.inexact_because}" in " ".join(output.split())
    assert checkpoints(tmp_path).latest().manifest.kind == "final"


def test_an_own_checkpoint_given_by_its_path_is_still_the_runs_own(
    whole: Path, expected: Ending, tmp_path: Path
) -> None:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    kept, *later = checkpoints(tmp_path).sound()

    finished(*RESUME, "--checkpoint", str(kept.path.absolute()), cwd=tmp_path, hook=Dies())

    require_same(end_of(tmp_path), expected)
    aside = sorted(path.name for path in checkpoints(tmp_path).folder.glob(".superseded-*"))
    assert aside == sorted(f".superseded-{each.name}-0" for each in later)


def test_a_run_that_went_on_from_elsewhere_and_died_does_not_start_over(
    whole: Path, expected: Ending, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(checkpoints(whole).sound()[1].path, copy)
    begin_and_die(tmp_path, 3)
    finished(*RESUME, "--checkpoint", str(copy), cwd=tmp_path, hook=Dies(5), code=-signal.SIGKILL)

    assert checkpoints(tmp_path).latest().manifest.epochs == 4
    finished(*RESUME, cwd=tmp_path, hook=Dies())

    require_same(end_of(tmp_path), expected)


def test_a_run_whose_checkpoints_were_all_set_aside_does_not_start_over(tmp_path: Path) -> None:
    begin_and_die(tmp_path, 3)
    (checkpoint,) = checkpoints(tmp_path).sound()
    checkpoint.path.rename(checkpoint.path.with_name(f".superseded-{checkpoint.name}-0"))  # as a kill may leave it

    output = finished(*RESUME, cwd=tmp_path, hook=Dies(), code=2)

    assert "set aside" in output
    assert checkpoints(tmp_path).names() == []


class Stops(Dies):
    """Asks to stop after the third epoch."""

    def on_epoch_end(self, ctx: HookContext) -> None:
        if ctx.state.epoch == 3:
            ctx.request_stop("enough")


def test_a_run_that_a_hook_has_stopped_stays_stopped_until_a_setting_is_changed(
    expected: Ending, tmp_path: Path
) -> None:
    assert "stopped (enough)" in finished(*NEW, cwd=tmp_path, hook=Stops())
    before = checkpoints(tmp_path).names()

    assert "stopped (enough)" in finished(*RESUME, cwd=tmp_path, hook=Dies())
    assert checkpoints(tmp_path).names() == before
    # What is kept of a run does not decide when it ends; what it trains for may.
    assert "stopped (enough)" in finished(*RESUME, "checkpoints.keep_last=5", cwd=tmp_path, hook=Dies())
    assert "completed" in finished(*RESUME, "stop_at_return=999", cwd=tmp_path, hook=Dies())

    assert end_of(tmp_path)["model.safetensors"] == expected["model.safetensors"]


def test_a_stop_that_a_change_has_lifted_stays_lifted_when_the_run_dies_before_it_saves_again(
    expected: Ending, tmp_path: Path
) -> None:
    finished(*NEW, cwd=tmp_path, hook=Stops())
    finished(*RESUME, "stop_at_return=999", cwd=tmp_path, hook=Dies(4), code=-signal.SIGKILL)

    assert "completed" in finished(*RESUME, cwd=tmp_path, hook=Dies())

    assert end_of(tmp_path)["model.safetensors"] == expected["model.safetensors"]
