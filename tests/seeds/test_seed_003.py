"""Seed 003: one hooks object with some of six methods, called with ``(epoch, metrics)`` and ``(batch_idx, loss)``."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookloop import CheckpointHook, CheckpointManager
from hookloop.checkpoints import Retention
from hookloop.core import TrainingLoop
from hookloop.errors import NoCheckpointError
from hookloop.testing import Harness, ToyWorkload


class CustomHooks:
    def on_epoch_end(self, epoch, metrics):
        print(f"Epoch {epoch} complete: {metrics}")  # noqa: T201  # as the seed writes it


class AllHooks:
    """The six methods of the seed's TrainingHooks protocol."""

    def __init__(self):
        self.calls = []

    def on_training_start(self):
        self.calls.append("training_start")

    def on_epoch_start(self, epoch):
        self.calls.append(("epoch_start", epoch))

    def on_batch_end(self, batch_idx, loss):
        self.calls.append(("batch_end", batch_idx, loss > 0))

    def on_validation_end(self, metrics):
        self.calls.append(("validation_end", dict(metrics)))

    def on_epoch_end(self, epoch, metrics):
        self.calls.append(("epoch_end", epoch, sorted(metrics)))

    def on_training_end(self):
        self.calls.append("training_end")


def test_the_one_method_object_of_the_seed_works(capsys: pytest.CaptureFixture[str]) -> None:
    TrainingLoop(ToyWorkload(epochs=2), [CustomHooks()]).run()

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("Epoch 1 complete: {'loss': ")
    assert second.startswith("Epoch 2 complete: {'loss': ")


def test_all_six_methods_are_called_in_order() -> None:
    hooks = AllHooks()

    TrainingLoop(ToyWorkload(epochs=1, steps_per_epoch=2, num_envs=4, minibatch_size=4), [hooks]).run()

    assert hooks.calls == [
        "training_start",
        ("epoch_start", 0),
        ("batch_end", 0, True),
        ("batch_end", 1, True),
        ("epoch_end", 1, ["loss"]),
        "training_end",
    ]


def test_validation_metrics_reach_the_hook_under_its_own_parameter_name() -> None:
    hooks = AllHooks()
    loop = TrainingLoop(ToyWorkload(), [hooks])
    loop.context.metrics = {"loss": 1.0}

    with loop.evaluation() as metrics:
        metrics["val_loss"] = 0.5

    assert hooks.calls == [("validation_end", {"val_loss": 0.5})]
    assert loop.context.metrics == {"loss": 1.0}


def test_training_end_is_called_although_training_failed() -> None:
    hooks = AllHooks()

    class Failing(ToyWorkload):
        def run_epoch(self, loop):
            raise ArithmeticError("NaN in the loss")

    with pytest.raises(ArithmeticError, match="NaN in the loss"):
        TrainingLoop(Failing(), [hooks]).run()

    assert hooks.calls == ["training_start", ("epoch_start", 0), "training_end"]


def test_the_hook_parameters_are_checked_when_the_hook_is_given() -> None:
    class Misnamed:
        def on_validation_end(self, metricz):
            raise AssertionError

    with pytest.raises(ValueError, match=r"metricz.*Did you mean 'metrics'"):
        Harness(Misnamed())


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which ``./checkpoints`` holds the checkpoints of eight epochs."""
    monkeypatch.chdir(tmp_path)
    manager = CheckpointManager("./checkpoints", retention=Retention(keep_last=100))
    TrainingLoop(ToyWorkload(epochs=8), [CheckpointHook(manager)]).run()
    return tmp_path


@pytest.mark.parametrize("folder", ["./checkpoints", "./elsewhere"])
def test_the_path_that_the_seed_resumes_from_means_the_checkpoint_of_that_epoch(trained: Path, folder: str) -> None:
    checkpoint, state = CheckpointManager(folder).load("./checkpoints/checkpoint_epoch0005.pt")

    assert checkpoint.manifest.epochs == 5
    assert state["state"]["clocks"]["epochs"] == 5
    assert checkpoint.path.parent == Path("checkpoints")


def test_a_run_resumed_from_the_path_of_the_seed_goes_on_with_the_same_bits(trained: Path) -> None:
    _, saved = CheckpointManager("./checkpoints").load("./checkpoints/checkpoint_epoch0005.pt")
    whole, resumed = ToyWorkload(epochs=12), ToyWorkload(epochs=12)
    TrainingLoop(whole).run()

    loop = TrainingLoop(resumed, [CheckpointHook(CheckpointManager("./other"))])
    loop.load_state_dict(saved)
    loop.run()

    assert resumed.state_dict() == whole.state_dict()


def test_an_epoch_that_was_not_saved_is_refused_with_those_that_were(trained: Path) -> None:
    with pytest.raises(NoCheckpointError, match=r"no checkpoint of epoch 99 .* \(epoch 8\)"):
        CheckpointManager("./checkpoints").load("./checkpoints/checkpoint_epoch0099.pt")
