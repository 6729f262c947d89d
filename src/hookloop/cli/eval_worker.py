"""``hookloop eval-worker``: carries out the evaluations that runs have asked for."""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.cli.evaluate import task_for, use_threads
from hookloop.errors import ConfigError, EvaluationError, HookloopError, StatsError
from hookloop.runs.folder import CONFIG_FILE, RunFolder

if TYPE_CHECKING:
    from hookloop.evaluation import EvaluationResult
    from hookloop.stats import EvaluationTasks
    from hookloop.stats.evaluation_tasks import Claim

Tell = Callable[[str], object]

# Whatever an environment or a checkpoint may do: the worker says so, and goes on with the next task.
FAILURES = (
    HookloopError, OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError, AssertionError,
    ArithmeticError, ImportError, MemoryError,
)  # fmt: skip


def eval_worker(
    source: str,
    *,
    name: str | None = None,
    poll_seconds: float = 2.0,
    lease_seconds: float = 120.0,
    once: bool = False,
    workers: int | None = None,
    cluster: str = "local",
) -> int:
    """Carry out the evaluations that runs ask for (evaluation.where=worker); as many workers as you like.

    Args:
        source: The folder of the runs, or the URL of the database that they share.
        name: What the worker is called; made of the machine and the process by default.
        poll_seconds: How long to wait before looking again, when there is nothing to do.
        lease_seconds: A worker that has given no sign for so long is taken for dead, and its task is free.
        once: End when there is nothing to do.
        workers: Have so many workers carry them out, which are replaced if they end; by default this process does.
        cluster: Where those are: local processes, ray (on this machine, or where RAY_ADDRESS points), ray://HOST:PORT.
    """
    if poll_seconds <= 0 or lease_seconds <= 0:
        raise ConfigError(f"--poll-seconds and --lease-seconds are above 0, got {poll_seconds} and {lease_seconds}.")
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # gives the task back on the way
    if workers is None and cluster == "local":
        return _work(source, name, poll_seconds, lease_seconds, is_once=once)
    from hookloop.cli.eval_crew import evaluate_with

    return evaluate_with(
        "process" if cluster == "local" else cluster,
        1 if workers is None else workers,
        source if "://" in source else str(Path(source).resolve()),
        name=name,
        poll_seconds=poll_seconds,
        lease_seconds=lease_seconds,
        is_once=once,
    )


def _work(source: str, name: str | None, poll_seconds: float, lease_seconds: float, *, is_once: bool) -> int:
    worker = worker_name(name)
    use_threads(1)
    while True:
        if not work_once(source, worker, lease_seconds, say):
            if is_once:
                return 0
            time.sleep(poll_seconds)


def worker_name(name: str | None) -> str:
    """Return what this process is called as a worker; by default after the machine and the process."""
    return f"{platform.node()}-{os.getpid()}" if name is None else name


def work_once(source: str, worker: str, lease_seconds: float, tell: Tell) -> bool:
    """Carry out one task of each database, and tell about it; say whether there was any."""
    return any([_work_on(url, worker, lease_seconds, tell) for url in _databases(source)])


def _databases(source: str) -> list[str | Path]:
    if "://" in source:
        return [source]
    folder = Path(source)
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {source!r}; give the folder of the runs, or a database's URL.")
    found = [RunFolder(file.parent).stats_url for file in sorted(folder.glob(f"*/{CONFIG_FILE}"))]
    return [url for url in dict.fromkeys(found) if not isinstance(url, Path) or url.exists()]


def _work_on(url: str | Path, worker: str, lease_seconds: float, tell: Tell) -> bool:
    """Carry out one task of a database; say whether there was one."""
    from hookloop.stats import EvaluationTasks

    with EvaluationTasks(url) as tasks:
        claim = tasks.claim(worker, lease_seconds=lease_seconds)
        if claim is None:
            return False
        is_settled = False
        try:
            is_settled = _carry_out(url, tasks, claim, worker, lease_seconds, tell)
        finally:
            if not is_settled:  # told to stop: the next worker need not wait for the lease to end
                tasks.release(claim, worker)
    return True


def _carry_out(
    url: str | Path, tasks: EvaluationTasks, claim: Claim, worker: str, lease_seconds: float, tell: Tell
) -> bool:
    from hookloop.hooks.evaluation_report import write_result
    from hookloop.monitoring.ticker import Ticker

    what = f"{claim.key.checkpoint_id} {claim.key.suite}"
    ticker = Ticker("lease", lease_seconds / 3, lambda: _renew(url, claim, worker, lease_seconds))
    ticker.start()
    try:
        result = _evaluate(url, claim)
    except FAILURES as error:
        is_given_up = tasks.fail(claim, worker, f"{type(error).__name__}: {error}")
        tell(f"failed  {what}  {'given up' if is_given_up else 'to be tried again'}: {error}")
        return True
    finally:
        ticker.stop()
    is_ours = tasks.finish(claim, worker, dict(result.clocks), lambda log: write_result(log, result))
    mean = ", ".join(f"{name} {score.mean:.4g}" for (_, name), score in result.scores.items())
    tell(f"{'done' if is_ours else 'late'}    {what}  {mean} in {result.seconds:.1f} s")
    return True


def _renew(url: str | Path, claim: Claim, worker: str, lease_seconds: float) -> None:
    from hookloop.stats import EvaluationTasks

    # A lease that cannot be renewed is lost at worst, and then somebody else does the same work.
    with suppress(StatsError), EvaluationTasks(url) as tasks:
        tasks.renew(claim, worker, lease_seconds=lease_seconds)


def _evaluate(url: str | Path, claim: Claim) -> EvaluationResult:
    from hookloop.checkpoints import CheckpointManager
    from hookloop.evaluation import evaluate
    from hookloop.rl.config import RLConfig
    from hookloop.rl.evaluation.loading import load_player
    from hookloop.stats import StatsReader

    with StatsReader(url) as reader:
        run: dict[str, Any] = reader.run(claim.key.run_id)
    settings = RLConfig.model_validate(run["config"])
    config = settings.evaluation
    task = task_for(
        settings, claim.key.suite, {"seed": claim.key.seed, "record": config.record, "render": config.render}
    )
    found, state = CheckpointManager(Path(os.devnull)).load(claim.uri)
    if found.id != claim.key.checkpoint_id:
        raise EvaluationError(f"There is {found.id} at {claim.uri}, which is not what was to be evaluated.")
    player = load_player(settings, state["workload"])
    simulations = task.simulations()
    result = evaluate(
        task, player, simulations, run_seed=run["seed"] or 0, clocks=found.manifest.clocks, checkpoint=found.id
    )
    named = replace(result, task=f"eval@{found.name}")
    if result.records and claim.uri.startswith("file://"):
        from hookloop.hooks.replays import RunReplays

        folder = RunFolder(found.path.parent.parent)
        return replace(named, replays=RunReplays(folder.replays, config.keep_replays).keep(result))
    return named


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
