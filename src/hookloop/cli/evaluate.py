"""``hookloop eval``: score a checkpoint of a run, and keep what was found."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hookloop.errors import ConfigError, UnknownNameError
from hookloop.runs.folder import RunConfig, RunFolder, find_run

if TYPE_CHECKING:
    from hookloop.checkpoints import Checkpoint
    from hookloop.evaluation import EvaluationResult, EvaluationTask
    from hookloop.evaluation.tasks import Player
    from hookloop.rl.config import RLConfig
    from hookloop.sequences.config import SequenceConfig

ALL, TRAINING, LESSONS = "all", "training", "lessons"
RESULT_VERSION = 1


def evaluate_run(
    run: str,
    *,
    checkpoint: str = "latest",
    episodes: int | None = None,
    suite: str | None = None,
    record: int = 0,
    render: Literal["rgb_array", "ansi"] | None = None,
    sampled: bool = False,
    seed: int | None = None,
    json: bool = False,
    runs_dir: Path = Path("runs"),
) -> int:
    """Score a checkpoint of a run.

    Args:
        run: The run's name, or its path.
        checkpoint: Which weights: latest, best, final, a step, an epoch such as epoch5, a path or a URI.
        episodes: How many to play; what the run's settings say by default.
        suite: What to play: training, lessons (the default where there are some), a lesson or a simulation of the run's
            suite by name, or all.
        record: Keep this many episodes of each as replays, for 'hookloop replay'.
        render: Keep what the environment draws in them, too: frames, or text.
        sampled: Draw actions as in training; else the likeliest are taken.
        seed: Of the first episode; by default the run's evaluations all meet the same episodes.
        json: Write the result as JSON.
        runs_dir: The folder of all runs.
    """
    from hookloop.checkpoints import CheckpointManager
    from hookloop.evaluation import evaluate
    from hookloop.hooks.replays import RunReplays

    if episodes is not None and episodes < 1:
        raise ConfigError(f"--episodes must be at least 1, got {episodes}.")
    folder = find_run(runs_dir, run)
    config = folder.read_config()
    settings, load_player = _evaluated(config)
    wanted = {"episodes": episodes, "seed": seed, "greedy": False if sampled else None, "render": render}
    task = task_for(settings, suite, {**wanted, "record": record})
    use_threads(config.threads)
    found, state = CheckpointManager(folder.checkpoints, retention=folder.read_retention()).load(checkpoint)
    result = evaluate(
        task,
        load_player(settings, state["workload"]),
        task.simulations(),
        run_seed=config.seed,
        clocks=found.manifest.clocks,
        checkpoint=found.id,
    )
    if record:
        result = replace(result, replays=RunReplays(folder.replays).keep(result))
    _show(folder, found, result, as_json=json)
    _keep(folder, config, found, result)
    return 0


def _evaluated(config: RunConfig) -> tuple[RLConfig | SequenceConfig, Callable[..., Player]]:
    """Return the settings of a run that can be evaluated, and what makes a player of its checkpoints."""
    if config.workload == "sequences":
        from hookloop.sequences.config import SequenceConfig
        from hookloop.sequences.loading import load_player as load_answering

        return SequenceConfig.model_validate(config.settings), load_answering
    from hookloop.rl.config import RLConfig
    from hookloop.rl.evaluation.loading import load_player

    return RLConfig.model_validate(config.settings), load_player


def task_for(settings: RLConfig | SequenceConfig, suite: str | None, given: Mapping[str, Any]) -> EvaluationTask:
    """Return what the settings of a run say about an evaluation, with what is given here; None says nothing."""
    from hookloop.config.settings import EvaluationConfig
    from hookloop.evaluation import EvaluationTask

    config: EvaluationConfig = getattr(settings, "evaluation", None) or EvaluationConfig()
    lessons = {} if settings.curriculum is None else {n: each.env for n, each in settings.curriculum.lessons.items()}
    suite = suite or (LESSONS if lessons else TRAINING)
    by_name: dict[str, Any] = {**lessons, **config.suite}
    groups: dict[str, dict[str, Any]] = {TRAINING: {}, ALL: by_name, **({LESSONS: lessons} if lessons else {})}
    if suite not in groups and suite not in by_name:
        raise UnknownNameError("suite", suite, (*groups, *by_name), where="in the settings of the run")
    options = config.model_dump(include={"episodes", "greedy", "seed", "num_envs", "max_seconds"})
    options |= {name: value for name, value in given.items() if value is not None}
    # Where there are lessons, they are what is trained in.
    scope = TRAINING if suite == TRAINING or (suite == ALL and not lessons) else "suite"
    return EvaluationTask(scope=scope, suite=groups.get(suite, {suite: by_name.get(suite)}), **options)


def use_threads(count: int) -> None:
    """Let one tensor operation use so many threads."""
    import torch

    torch.set_num_threads(count)


def _keep(folder: RunFolder, config: RunConfig, checkpoint: Checkpoint, result: EvaluationResult) -> None:
    from hookloop.hooks.evaluation_report import write_result
    from hookloop.stats import StatsStore

    # A name of its own: what the run itself finds at the same step is another row.
    with StatsStore(folder.stats_url, run_id=config.run_id) as store:
        write_result(store, replace(result, task=f"eval@{checkpoint.name}"))


def _show(folder: RunFolder, checkpoint: Checkpoint, result: EvaluationResult, *, as_json: bool) -> None:
    if as_json:
        _say(json_module.dumps(_as_json(folder, checkpoint, result)))
        return
    how = "greedy" if result.greedy else "sampled"
    _say(f"{folder.name}  {checkpoint.name}  {how}, {result.episodes} episodes, seeds from {result.seed}")
    rows: list[tuple[str, ...]] = [
        ("simulation", "episodes", "mean", "median", "interquartile mean", "success", "length")
    ]
    for (_, name), score in result.scores.items():
        estimates = [str(score.estimates[each]) for each in ("mean", "median", "iqm")]
        length = score.statistics()["episode/length"]
        rows.append((name, str(score.episodes), *estimates, f"{score.success_rate:.0%}", f"{length:.4g}"))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        _say("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    for (_, name), score in result.scores.items():
        if score.failed:
            _say(f"{name}: {score.failed} episodes failed: {score.why}")
    for why in result.failures.values():
        _say(why)
    for name in result.replays:
        _say(f"replay  hookloop replay {folder.path} --episode {name}")


def _as_json(folder: RunFolder, checkpoint: Checkpoint, result: EvaluationResult) -> dict[str, Any]:
    scores = {
        name: {"category": category, "failed": score.failed, "returns": list(score.returns), **score.statistics()}
        for (category, name), score in result.scores.items()
    }
    return {
        "version": RESULT_VERSION,
        "run": folder.name,
        "checkpoint": checkpoint.id,
        "clocks": dict(result.clocks),
        "seed": result.seed,
        "greedy": result.greedy,
        "seconds": result.seconds,
        "scores": scores,
        "failures": {name: why for (_, name), why in result.failures.items()},
        "replays": dict(result.replays),
    }


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
