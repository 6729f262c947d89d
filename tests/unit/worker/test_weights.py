from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from hookloop.checkpoints import CheckpointManager, Description
from hookloop.checkpoints.store import CheckpointStore
from hookloop.worker import (
    CheckpointWeights,
    LocalWeights,
    SharedWeightsReceiver,
    SharedWeightsServer,
    WeightUpdate,
    WorkerError,
)

LIKE = {"w": torch.zeros(3, 2), "b": torch.zeros(2, dtype=torch.float64)}


def weights(value: float) -> dict[str, torch.Tensor]:
    return {name: torch.full_like(tensor, value) for name, tensor in LIKE.items()}


def save(manager: CheckpointManager, version: int, value: float, *, step: int | None = None) -> None:
    state = {"workload": {"learner": {"policy": weights(value)}}}
    clocks = {"policy_version": version, "env_steps": version * 10}
    manager.save(state, Description(step=version * 10 if step is None else step, clocks=clocks, run_id="run"))
    manager.collect(wait=True)


def received(update: WeightUpdate | None) -> tuple[int, float]:
    assert update is not None
    values = {float(number) for tensor in update.tensors.values() for number in tensor.flatten()}
    assert set(update.tensors) == set(LIKE)
    assert len(values) == 1
    return update.version, values.pop()


def test_weights_served_in_this_process_are_received_once_and_are_a_copy() -> None:
    local, served = LocalWeights(), weights(1.0)
    assert local.receive() is None

    local.serve(1, served)
    local.serve(2, served)
    served["w"].zero_()

    assert received(local.receive()) == (2, 1.0)
    assert local.receive() is None


def test_weights_in_shared_memory_are_received_by_version_the_newest_first() -> None:
    server = SharedWeightsServer(LIKE)
    receiver = SharedWeightsReceiver(server.descriptor)
    assert receiver.receive() is None  # the memory exists, and is no weights

    server.serve(0, weights(0.5))
    assert received(receiver.receive()) == (0, 0.5)
    assert receiver.receive() is None
    server.serve(1, weights(1.0))
    server.serve(2, weights(2.0))

    assert received(receiver.receive()) == (2, 2.0)
    server.close()
    assert receiver.receive() is None


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"w": LIKE["w"]}, r"names \['b'\]"),
        ({**LIKE, "w": torch.zeros(2, 3)}, "types or shapes"),
        ({**LIKE, "b": torch.zeros(2)}, "types or shapes"),
    ],
)
def test_weights_of_another_form_are_refused_by_shared_memory(tensors: Mapping[str, Any], words: str) -> None:
    server = SharedWeightsServer(LIKE)

    with pytest.raises(WorkerError, match=words):
        server.serve(1, tensors)
    with pytest.raises(WorkerError, match="from 0 on"):
        server.serve(-1, LIKE)
    server.close()


def test_weights_come_out_of_the_newest_checkpoint_with_its_immutable_id(tmp_path: Path) -> None:
    receiver = CheckpointWeights(CheckpointStore(tmp_path))
    assert receiver.receive() is None

    with CheckpointManager(tmp_path) as manager:
        save(manager, 1, 1.0)
        save(manager, 2, 2.0)
        update = receiver.receive()

    assert received(update) == (2, 2.0)
    assert update is not None
    assert update.id.startswith("run/step-000000000020@")
    assert receiver.receive() is None


def test_a_damaged_checkpoint_is_passed_over_and_nothing_is_moved(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        save(manager, 1, 1.0)
        save(manager, 2, 2.0)
    broken = tmp_path / "step-000000000020" / "state.json"
    broken.write_bytes(broken.read_bytes()[:-1])
    before = sorted(tmp_path.rglob("*"))
    receiver = CheckpointWeights(CheckpointStore(tmp_path))

    assert received(receiver.receive()) == (1, 1.0)
    assert receiver.receive() is None
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_that_goes_back_takes_its_workers_back_with_it(tmp_path: Path) -> None:
    receiver = CheckpointWeights(CheckpointStore(tmp_path))
    with CheckpointManager(tmp_path) as manager:
        save(manager, 1, 1.0)
        save(manager, 2, 2.0)
        assert received(receiver.receive()) == (2, 2.0)

        manager.restore("step-000000000010")
        assert received(receiver.receive()) == (1, 1.0)
        save(manager, 2, 2.5)  # the same version and the same name, and other weights
        assert received(receiver.receive()) == (2, 2.5)


def test_a_checkpoint_that_is_let_go_while_it_is_read_is_looked_for_again(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    manager = CheckpointManager(tmp_path)
    save(manager, 1, 1.0)

    class Overtaken:
        """The run moves on between the list of names and the read."""

        look = staticmethod(store.look)

        def names(self) -> list[str]:
            return store.names()

        def read_latest(self, *, sets_aside: bool) -> Any:
            if store.names() == ["step-000000000010"]:
                save(manager, 2, 2.0)
                store.delete("step-000000000010")
                return store.read("step-000000000010")
            return store.read_latest(sets_aside=sets_aside)

    receiver = CheckpointWeights(Overtaken())

    assert receiver.receive() is None
    assert received(receiver.receive()) == (2, 2.0)
    manager.close()


def test_a_checkpoint_without_such_weights_says_what_is_missing(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        manager.save({"workload": {"engine": {}}}, Description(step=1, clocks={"policy_version": 1}))
        manager.collect(wait=True)
    store = CheckpointStore(tmp_path)

    with pytest.raises(WorkerError, match=r"no weights at workload/learner/policy: 'learner' is missing"):
        CheckpointWeights(store).receive()
    with pytest.raises(WorkerError, match="no clock 'updates' to be the version"):
        CheckpointWeights(store, path=("workload", "engine"), clock="updates").receive()
