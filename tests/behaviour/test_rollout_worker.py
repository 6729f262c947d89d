"""A trainer and its rollout workers, as processes that share a folder and nothing else."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing import Pipe, get_context
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path

import pytest
import torch

from hookloop.checkpoints.store import CheckpointStore
from hookloop.core import HookContext, TrainingLoop
from hookloop.errors import RegistrationError
from hookloop.hooks import ServeWeightsHook
from hookloop.testing import ToyWorkload
from hookloop.worker import (
    GymnasiumSource,
    GymnasiumSourceConfig,
    LocalWeights,
    RolloutWorker,
    SharedWeightsServer,
    WorkerConfig,
)
from tests.waiting import wait_until
from tests.worker_processes import (
    CHECKPOINTS,
    ENV,
    EPOCHS,
    GO,
    HORIZON,
    PATIENCE_SECONDS,
    POLICY,
    echo_weights,
    make_trainer,
    train,
    work,
)


@contextmanager
def started(act: Callable[..., None], *arguments: object) -> Generator[BaseProcess]:
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.worker_processes"])  # one import of torch for all of them
    process = context.Process(target=act, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def test_workers_follow_a_trainers_checkpoints_stop_when_it_is_done_and_a_killed_one_changes_nothing(
    tmp_path: Path,
) -> None:
    with started(work, tmp_path, "a") as killed, started(work, tmp_path, "b") as worker:
        with started(train, tmp_path) as trainer:
            wait_until(lambda: all((tmp_path / f"{name}.delivered").exists() for name in "ab"))
            os.kill(killed.pid or 0, signal.SIGKILL)
            killed.join(PATIENCE_SECONDS)
            (tmp_path / GO).touch()
            trainer.join(PATIENCE_SECONDS)
            assert trainer.exitcode == 0
        worker.join(PATIENCE_SECONDS)
        assert (killed.exitcode, worker.exitcode) == (-signal.SIGKILL, 0)

    told = json.loads((tmp_path / "b.json").read_text())
    assert (told["outcome"], told["reason"]) == ("stopped", "the run has ended: completed")
    versions = told["versions"]
    assert versions == sorted(versions)
    assert 1 <= versions[0] <= 2  # of a checkpoint, and never the weights a network begins with
    alone = make_trainer()
    alone.train(EPOCHS * HORIZON * ENV.num_envs)
    read = CheckpointStore(tmp_path / CHECKPOINTS).read_latest(sets_aside=False)
    assert read is not None
    trained = read[1]["workload"]["learner"]["policy"]
    expected = alone.policy.state_dict()
    assert trained.keys() == expected.keys()
    assert all(torch.equal(trained[name], expected[name]) for name in expected)


def test_weights_in_shared_memory_reach_another_process_whole_and_in_order() -> None:
    like = {"w": torch.zeros(300, 100), "b": torch.zeros(100)}
    server, (ours, theirs) = SharedWeightsServer(like), Pipe()
    with started(echo_weights, DupFd(server.descriptor), 200, theirs) as process:
        for version in range(201):
            server.serve(version, {name: torch.full_like(tensor, version) for name, tensor in like.items()})
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0

    told = []
    while ours.poll():
        told.append(ours.recv())
    assert told[-1] == (200, {200.0})
    assert all(values == {float(version)} for version, values in told)


def test_a_trainer_serves_its_weights_and_a_worker_beside_it_generates_with_them() -> None:
    weights, generated = LocalWeights(), []
    config = WorkerConfig(source=GymnasiumSourceConfig(env=ENV, policy=POLICY), rollouts_per_step=1)
    worker = RolloutWorker(config, weights=weights, deliver=generated.extend, watch_signals=False)
    trainer = make_trainer([ServeWeightsHook(weights)])

    def generate(ctx: HookContext) -> None:
        worker.run(ctx.state.epoch + 1)

    trainer.add_hook(generate, name="worker", on="epoch_start")

    trainer.train(3 * HORIZON * ENV.num_envs)

    epochs = trainer.state.epoch
    assert [rollout.weight_version for rollout in generated] == list(range(epochs))
    assert worker.run(epochs + 1).weight_version == epochs
    expected = trainer.policy.state_dict()
    assert isinstance(worker.source, GymnasiumSource)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in worker.source.policy.state_dict().items())


def test_a_trainer_without_a_model_cannot_serve() -> None:
    with pytest.raises(RegistrationError, match="needs a trainer with a model"):
        TrainingLoop(ToyWorkload(), [ServeWeightsHook(LocalWeights())]).run()
