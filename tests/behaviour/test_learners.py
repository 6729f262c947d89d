"""Several learners of one run, in real processes over gloo: they agree, go on exactly, and fail together."""

from __future__ import annotations

import importlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from hookloop.checkpoints import CheckpointStore
from hookloop.core import HookManager, Ranks
from hookloop.monitoring import read_beat
from hookloop.supervised import Trainer, TrainingConfig
from tests.faults.endings import Ending, ending, require_same
from tests.faults.processes import warm_up
from tests.ranks import (
    QUIET,
    RESUME,
    RL,
    finished,
    fork_ranks,
    learners,
    processes_in,
    run_ranks,
    torchrun,
)  # fmt: skip
from tests.waiting import wait_until

SUPERVISED = (
    "train", "digits", "training.epochs=2", "model.channels=[2, 4]", "model.hidden=8", "training.batch_size=512",
    "training.gradient_accumulation_steps=2", "training.save_every_steps=1", "checkpoints.schedule=every 1 epochs",
    "--run", "mine",
)  # fmt: skip


def end_of(cwd: Path) -> Ending:
    return ending(cwd / "runs" / "mine" / "checkpoints")


def state_of(cwd: Path) -> Any:
    found = CheckpointStore(cwd / "runs" / "mine" / "checkpoints").read_latest()
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def warm() -> None:
    """Import here what forked ranks need."""

    def import_all() -> None:
        importlib.import_module("hookloop.distributed")
        importlib.import_module("hookloop.supervised.build")
        importlib.import_module("sklearn.datasets").load_digits()

    warm_up(import_all)
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def rl_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of reinforcement learning by two learners, as a user starts it, and what was printed."""
    cwd = tmp_path_factory.mktemp("rl")
    child = torchrun("-m", "--", "hookloop", *RL, *QUIET, cwd=cwd)
    assert child.code() == 0, child.output
    return cwd, child.output


@pytest.fixture(scope="module")
def supervised_run(tmp_path_factory: pytest.TempPathFactory, warm: None) -> Path:
    cwd = tmp_path_factory.mktemp("supervised")
    finished(*SUPERVISED, *QUIET, cwd=cwd)
    return cwd


def test_torchrun_trains_one_run_with_one_set_of_files(rl_run: tuple[Path, str]) -> None:
    cwd, printed = rl_run
    folder = cwd / "runs" / "mine"
    result = json.loads((folder / "result.json").read_text())

    assert printed.count("completed") == 1
    assert result["outcome"] == "completed"
    assert result["env_steps"] >= 1500
    assert {file.name for file in folder.iterdir()} - {"trackers"} == {
        "checkpoints", "config.json", "heartbeat.json", "heartbeat-rank1.json", "lock", "metrics.jsonl", "result.json",
        "stats.sqlite",
    }  # fmt: skip
    assert json.loads((folder / "config.json").read_text())["learners"] == 2
    assert [read_beat(folder / name).rank for name in ("heartbeat.json", "heartbeat-rank1.json")] == [0, 1]


def test_clocks_count_the_steps_of_all_learners(rl_run: tuple[Path, str]) -> None:
    state = state_of(rl_run[0])
    clocks, (other,) = state["state"]["clocks"], state["ranks"]

    assert 0.75 * 8 * 16 * clocks["epochs"] < clocks["env_steps"] <= 8 * 16 * clocks["epochs"]
    assert clocks["optimizer_steps"] == 2 * 2 * clocks["epochs"]
    # The last hundred episodes are those of all ranks, in the same order everywhere.
    assert state["workload"]["collector"]["recent"] == other["workload"]["collector"]["recent"]
    assert not torch.equal(
        state["workload"]["collector"]["generator"], other["workload"]["collector"]["generator"]
    )  # each acts at random on its own


def test_a_run_that_was_asked_to_end_goes_on_with_the_same_bits(
    rl_run: tuple[Path, str], warm: None, tmp_path: Path
) -> None:
    is_asked = tmp_path / "asked"

    def hold_up(_rank: int) -> None:
        from hookloop.rl.collector import Collector

        collect = Collector.collect

        def collect_and_wait(self: Collector, loop: Any) -> None:
            if loop.clocks.epochs == 2:  # one is due before this epoch, and none after it
                wait_until(is_asked.exists)
            collect(self, loop)

        Collector.collect = collect_and_wait  # in a forked child

    children = learners(*RL, *QUIET, cwd=tmp_path, prepare=hold_up)
    checkpoints = tmp_path / "runs" / "mine" / "checkpoints"
    wait_until(lambda: checkpoints.is_dir() and bool(CheckpointStore(checkpoints).names()))
    for child in children:
        child.signal(signal.SIGTERM)
    is_asked.touch()
    codes = [child.code() for child in children]

    assert codes == [128 + signal.SIGTERM] * 2, "\n".join(child.output for child in children)
    found = CheckpointStore(checkpoints).read_latest()
    assert found is not None
    assert found[0].manifest.kind == "interrupted"

    finished(*RESUME, cwd=tmp_path)

    require_same(end_of(tmp_path), end_of(rl_run[0]))


def test_a_rank_that_raises_ends_the_job_with_its_traceback_and_the_run_goes_on_exactly(
    rl_run: tuple[Path, str], warm: None, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "from hookloop.rl.collector import Collector\n"
        "collect = Collector.collect\n"
        "def limited(self, loop):\n"
        "    if os.environ['RANK'] == '1' and loop.clocks.epochs == 5:\n"
        "        raise ValueError('rank one has had enough')\n"
        "    collect(self, loop)\n"
        "Collector.collect = limited\n"
        "from hookloop.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )

    def ends(folder: Path) -> str:
        folder.mkdir()
        child = torchrun("--", str(script), *RL, *QUIET, cwd=folder)
        assert child.code() != 0
        printed = child.output
        assert "in limited" in printed
        assert "error: rank 1: rank one has had enough" in printed
        elastic = printed.count("torch.distributed.elastic.multiprocessing.errors.Child")
        assert printed.count("Traceback") == 1 + elastic
        wait_until(lambda: not processes_in(folder))
        return printed

    folders = [tmp_path / str(attempt) for attempt in range(5)]  # torchrun may end rank 0 before it has said a word
    words = "error: rank 0: Rank 0 waited for the other ranks in vain"
    ended = next((folder for folder in folders if words in ends(folder)), None)
    assert ended is not None, f"rank 0 was never heard: {words}"

    finished(*RESUME, cwd=ended)

    require_same(end_of(ended), end_of(rl_run[0]))


def test_a_supervised_run_that_a_killed_rank_ended_goes_on_with_the_same_bits(
    supervised_run: Path, warm: None, tmp_path: Path
) -> None:
    def die(rank: int) -> None:
        from hookloop.supervised.accumulator import GradientAccumulator

        accumulate = GradientAccumulator.accumulate

        def accumulate_and_die(self: GradientAccumulator, *given: Any, **options: Any) -> bool:
            if rank == 1 and self.steps == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return accumulate(self, *given, **options)

        GradientAccumulator.accumulate = accumulate_and_die  # in a forked child

    main, other = learners(*SUPERVISED, *QUIET, cwd=tmp_path, prepare=die)
    assert other.code() == -signal.SIGKILL
    main.signal(signal.SIGTERM)  # as torchrun does
    assert main.code() in (4, 128 + signal.SIGTERM), main.output

    finished(*RESUME, cwd=tmp_path)

    require_same(end_of(tmp_path), end_of(supervised_run))


def test_ranks_that_are_asked_different_things_are_refused_at_the_start(warm: None, tmp_path: Path) -> None:
    def work(rank: int) -> None:
        from hookloop.cli.learners import end
        from hookloop.cli.main import run

        end(run([*RL, *QUIET, "--seed", str(rank)]))

    main, other = fork_ranks(2, work, tmp_path)

    assert (main.code(), other.code()) == (2, 2)
    assert "Rank 1 has another seed than main: 1, where main has 0" in main.output
    assert not (tmp_path / "runs").exists()


def test_a_run_goes_on_with_as_many_learners_as_it_began_with(supervised_run: Path, warm: None) -> None:
    alone, *_ = fork_ranks(1, lambda _rank: _resume(), supervised_run)

    assert alone.code() == 2
    assert "begun by 2 learners, and these are 1" in alone.output
    assert "torchrun --nproc-per-node 2" in alone.output


def test_settings_that_cannot_be_shared_are_refused_with_the_nearest_that_can(warm: None, tmp_path: Path) -> None:
    main, _ = learners(*RL, "env.num_envs=7", *QUIET, cwd=tmp_path)
    assert main.code() == 2
    assert "cannot be shared evenly by 2 learners; the nearest number that can is 8" in main.output

    main, _ = learners("train", "digits", "training.batch_size=5", *QUIET, cwd=tmp_path)
    assert main.code() == 2
    assert "the nearest batch_size that can is 4" in main.output


def test_two_learners_train_what_one_trains(warm: None, tmp_path: Path) -> None:
    exact, rounded = trained_on_integers(None), trained_on_fractions(None)

    of_ranks = run_ranks(2, lambda ranks: [trained_on_integers(ranks), trained_on_fractions(ranks)], tmp_path)

    assert of_ranks[0] == of_ranks[1]  # to the bit
    assert of_ranks[0][0] == exact  # to the bit: sums of small fractions of two are not rounded
    for weights, expected in zip(of_ranks[0][1], rounded, strict=True):
        torch.testing.assert_close(torch.tensor(weights), torch.tensor(expected), rtol=1e-4, atol=1e-6)


def trained_on_integers(ranks: Ranks | None) -> list[Any]:
    """Train a few steps in which nothing is rounded."""
    generator = torch.Generator().manual_seed(1)
    model = torch.nn.Linear(3, 1)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    inputs, targets = (torch.randint(-2, 3, (8, width), generator=generator).float() for width in (3, 1))
    return trained(model, (inputs, targets), ranks, epochs=2, batch_size=4, learning_rate=0.25)


def trained_on_fractions(ranks: Ranks | None) -> list[Any]:
    """Train on batches whose last one cannot be shared evenly, in windows of two."""
    generator = torch.Generator().manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    inputs, targets = (torch.randn(23, width, generator=generator) for width in (3, 1))
    options = {"gradient_accumulation_steps": 2, "learning_rate": 0.1}
    return trained(model, (inputs, targets), ranks, epochs=3, batch_size=4, **options)


def trained(model: torch.nn.Module, data: Any, ranks: Ranks | None, **options: Any) -> list[Any]:
    config = TrainingConfig(optimizer="sgd", weight_decay=0.0, max_grad_norm=None, loss="regression", **options)
    Trainer(model, None, config, HookManager(ranks=ranks)).train(data)
    return [parameter.tolist() for parameter in model.parameters()]


def _resume() -> None:
    from hookloop.cli.learners import end
    from hookloop.cli.main import run

    end(run(list(RESUME)))
