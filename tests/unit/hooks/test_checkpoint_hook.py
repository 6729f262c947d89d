"""CheckpointHook: when it saves, what it tells of, what it goes on from, and what it leaves alone."""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest

from hookloop.checkpoints import Checkpoint, CheckpointStore
from hookloop.core import HookContext, TrainingLoop
from hookloop.errors import CheckpointError, DamagedCheckpointError, HookStateError, LocationError, RegistrationError
from hookloop.hooks import CheckpointHook
from hookloop.testing import ToyWorkload, TraceHook, assert_pure, assert_resumable
from tests.saving import EVENT_SECONDS, WaitingDisk, manager_in, names_in


class Listener:
    """Notes every checkpoint it is told of, and whether it is whole by then."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str]] = []
        self.checkpoints: list[Checkpoint] = []

    def on_checkpoint_saved(self, ctx: HookContext) -> None:
        checkpoint = ctx.checkpoint
        CheckpointStore(checkpoint.path.parent).verify(checkpoint.name)
        self.heard.append((ctx.state.epoch, checkpoint.name))
        self.checkpoints.append(checkpoint)


def train(
    folder: Path, *others: object, epochs: int = 10, manager: dict[str, Any] | None = None, **options: Any
) -> Any:
    """Train the toy with a hook that saves, and return the loop."""
    hook = CheckpointHook(manager_in(folder, **(manager or {})), **options)
    loop = TrainingLoop(ToyWorkload(epochs), [hook, *others], watch_signals=False)
    loop.run()
    return loop


def epochs_in(folder: Path) -> list[int]:
    return [each.manifest.epochs for each in CheckpointStore(folder).sound()]


# When


@pytest.mark.parametrize("asynchronous", [False, True])
def test_it_saves_at_its_interval_and_always_at_the_end(tmp_path: Path, asynchronous: bool) -> None:
    train(tmp_path, checkpoint_interval=3, manager={"asynchronous": asynchronous})

    assert names_in(tmp_path) == [
        "step-000000000003", "step-000000000006", "step-000000000009", "step-000000000010-final",
    ]  # fmt: skip


def test_the_end_is_saved_though_the_interval_is_never_reached(tmp_path: Path) -> None:
    train(tmp_path, checkpoint_interval=100)

    assert names_in(tmp_path) == ["step-000000000010-final"]


def test_a_schedule_may_take_the_place_of_the_interval(tmp_path: Path) -> None:
    train(tmp_path, schedule="once at 4 epochs")

    assert epochs_in(tmp_path) == [4, 10]


def test_a_request_for_a_checkpoint_is_served(tmp_path: Path) -> None:
    class Asking:
        def on_epoch_end(self, ctx: HookContext) -> None:
            if ctx.state.epoch in (2, 7):
                ctx.request_checkpoint()

    train(tmp_path, Asking(), checkpoint_interval=100)

    assert epochs_in(tmp_path) == [2, 7, 10]


def test_a_run_that_fails_saves_nothing_on_its_way_out(tmp_path: Path) -> None:
    class Broken(ToyWorkload):
        def run_epoch(self, loop: TrainingLoop) -> None:
            super().run_epoch(loop)
            if loop.clocks.epochs == 4:
                raise ZeroDivisionError

    hook = CheckpointHook(manager_in(tmp_path, asynchronous=True), 3)
    with pytest.raises(ZeroDivisionError):
        TrainingLoop(Broken(10), [hook], watch_signals=False).run()

    assert names_in(tmp_path) == ["step-000000000003"]


def test_a_run_that_was_interrupted_is_saved_as_such(tmp_path: Path) -> None:
    class Interrupting:
        def on_epoch_end(self, ctx: HookContext) -> None:
            if ctx.state.epoch == 4:
                os.kill(os.getpid(), signal.SIGTERM)

    loop = TrainingLoop(ToyWorkload(10), [CheckpointHook(manager_in(tmp_path), 100), Interrupting()])
    loop.run()

    (only,) = CheckpointStore(tmp_path).sound()
    assert (only.name, only.manifest.kind) == ("step-000000000004", "interrupted")


@pytest.mark.parametrize("interval", [0, -1, 1.5, True, "3"])
def test_an_interval_that_means_nothing_is_refused(tmp_path: Path, interval: Any) -> None:
    with pytest.raises(RegistrationError, match="at least 1 epoch"):
        CheckpointHook(manager_in(tmp_path), interval)
    with pytest.raises(RegistrationError, match="at least 1 epoch"):
        CheckpointHook(manager_in(tmp_path), 1, interval)


# What it tells


@pytest.mark.parametrize("asynchronous", [False, True])
def test_it_tells_of_each_checkpoint_once_and_in_order(tmp_path: Path, asynchronous: bool) -> None:
    listener = Listener()

    loop = train(tmp_path, listener, checkpoint_interval=2, manager={"asynchronous": asynchronous})

    names = [name for _, name in listener.heard]
    assert names == names_in(tmp_path)
    assert len({each.id for each in listener.checkpoints}) == len(names)
    assert loop.state.latest_checkpoint_uri == listener.checkpoints[-1].uri == (tmp_path / names[-1]).as_uri()
    assert loop.state.latest_saved_epoch == 10


def test_it_tells_of_a_checkpoint_only_once_it_is_durable_and_training_goes_on_meanwhile(tmp_path: Path) -> None:
    disk, listener = WaitingDisk(), Listener()

    class Watching:
        """Lets the disk go on at the end of epoch 4, by when the save of epoch 2 is still under way."""

        def on_epoch_end(self, ctx: HookContext) -> None:
            if ctx.state.epoch == 3:
                assert disk.has_begun.wait(EVENT_SECONDS)
                assert listener.heard == []
                assert ctx.state.latest_saved_epoch is None
                disk.may_go_on.set()

    train(tmp_path, Watching(), listener, checkpoint_interval=2, manager={"asynchronous": True, "disk": disk})

    assert listener.heard[0][1] == "step-000000000002"
    assert listener.heard[0][0] in (3, 4)


def test_a_hook_that_may_skip_does_not_wait_for_a_slow_disk(tmp_path: Path) -> None:
    disk = WaitingDisk()

    class Watching:
        def on_epoch_end(self, ctx: HookContext) -> None:
            if ctx.state.epoch == 8:  # would never be reached if a save waited
                disk.may_go_on.set()

    options = {"asynchronous": True, "disk": disk, "when_busy": "skip"}
    train(tmp_path, Watching(), checkpoint_interval=1, manager=options)

    assert epochs_in(tmp_path)[0] == 1
    assert epochs_in(tmp_path)[-1] == 10
    assert not {3, 4, 5, 6, 7} & set(epochs_in(tmp_path))


# What it goes on from


def outcome(loop: Any) -> Any:
    return loop.workload.state_dict(), {k: v for k, v in loop.clocks.reading().items() if k != "seconds"}


@pytest.mark.parametrize("selector", [True, "latest", "epoch6", "6"])
def test_a_resumed_run_ends_with_the_bits_of_one_that_never_stopped(tmp_path: Path, selector: Any) -> None:
    whole = train(tmp_path / "whole", epochs=12)
    train(tmp_path / "parts", epochs=6, checkpoint_interval=4)

    resumed = train(tmp_path / "parts", epochs=12, resume=selector)

    assert outcome(resumed) == outcome(whole)
    assert resumed.state.attempt == 2


def test_with_nothing_to_go_on_from_it_begins_anew(tmp_path: Path) -> None:
    loop = train(tmp_path, resume=True, epochs=3)

    assert loop.clocks.epochs == 3


def test_it_does_not_write_into_the_folder_of_another_run(tmp_path: Path) -> None:
    train(tmp_path, epochs=2)
    before = names_in(tmp_path)

    with pytest.raises(CheckpointError, match="holds the checkpoints of an earlier run"):
        train(tmp_path, epochs=2)

    assert names_in(tmp_path) == before


def test_a_damaged_one_is_set_aside_and_the_one_before_gives_the_same_bits(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", epochs=8)
    train(tmp_path / "parts", epochs=5)
    for name in ("step-000000000005", "step-000000000005-final"):
        (tmp_path / "parts" / name / "state.json").write_bytes(b"{}")

    resumed = train(tmp_path / "parts", epochs=8, resume=True)

    assert outcome(resumed) == outcome(whole)
    assert sum(name.startswith(".bad-") for name in names_in(tmp_path / "parts")) == 2


def test_when_all_are_damaged_nothing_is_trained(tmp_path: Path) -> None:
    train(tmp_path, epochs=2)
    for folder in tmp_path.glob("step-*"):
        (folder / "MANIFEST.json").unlink()
    trace = TraceHook()

    with pytest.raises(DamagedCheckpointError, match="Every checkpoint"):
        train(tmp_path, trace, epochs=5, resume=True)

    assert "epoch_start" not in trace.events


def test_a_checkpoint_of_other_hooks_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    class Counting:
        def on_epoch_end(self) -> None: ...

    train(tmp_path, Counting(), epochs=2)

    with pytest.raises(HookStateError, match="Counting"):
        train(tmp_path, epochs=4, resume=True)
    assert train(tmp_path, epochs=4, resume=True, strict=False).clocks.epochs == 4


class InItsOwnFolder(CheckpointHook):
    """A copy of it saves to another folder: the proofs copy a hook for each of their runs."""

    def __init__(self, root: Path) -> None:
        self._root = root
        super().__init__(manager_in(root / uuid.uuid4().hex, asynchronous=True), 2)

    def __deepcopy__(self, memo: object) -> InItsOwnFolder:
        return InItsOwnFolder(self._root)


def test_it_leaves_training_alone_and_resumes_exactly(tmp_path: Path) -> None:
    assert_pure(InItsOwnFolder(tmp_path), epochs=6)
    assert_resumable(InItsOwnFolder(tmp_path), epochs=6)


# Publishing


class Place:
    """A place that is out of reach for some of the checkpoints."""

    def __init__(self, kind: str = "uri", broken: tuple[int, ...] = ()) -> None:
        self.kind, self.broken = kind, broken
        self.tried: list[str] = []
        self.published: list[str] = []

    def publish(self, checkpoint: Checkpoint) -> str:
        CheckpointStore(checkpoint.path.parent).verify(checkpoint.name)
        self.tried.append(checkpoint.name)
        if checkpoint.step in self.broken:
            raise LocationError(f"no way there for {checkpoint.name}")
        self.published.append(checkpoint.name)
        return f"{self.kind}://{checkpoint.name}"


def test_it_publishes_at_its_own_interval_and_the_last_always(tmp_path: Path) -> None:
    place = Place("wandb")

    loop = train(tmp_path, checkpoint_interval=1, wandb_checkpoint_interval=4, sinks=[place])

    assert place.published == ["step-000000000004", "step-000000000008", "step-000000000010-final"]
    assert loop.state.latest_wandb_uri == "wandb://step-000000000010-final"
    assert loop.state.latest_checkpoint_uri == (tmp_path / "step-000000000010-final").as_uri()


def test_a_place_out_of_reach_never_stops_training_and_the_next_one_is_tried(tmp_path: Path) -> None:
    place = Place(broken=(2, 4, 6))

    loop = train(tmp_path, checkpoint_interval=2, sinks=[place], epochs=9)

    assert loop.state.outcome == "completed"
    assert "step-000000000009-final" in place.published
    failures = loop.state.failures["checkpoint/publish"]
    assert failures.count == len(place.tried) - len(place.published) > 0
    assert "no way there" in failures.last_error


def test_the_last_one_is_published_though_the_one_before_it_failed(tmp_path: Path) -> None:
    place = Place(broken=(5,))

    train(tmp_path, checkpoint_interval=5, sinks=[place], epochs=6)

    assert place.tried == ["step-000000000005", "step-000000000006-final"]
    assert place.published == ["step-000000000006-final"]
