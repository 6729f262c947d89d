"""The kinds of runs: which settings each has, and how a trainer is built and run from them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from hookloop.cli.teachers import find_teacher, pin_teachers
from hookloop.config.settings import RunSettings
from hookloop.errors import ConfigError, UnknownNameError
from hookloop.runs.folder import RunFolder

if TYPE_CHECKING:
    from hookloop.core import HookManager, LoopResult, TrainerState
    from hookloop.rl.config import RLConfig
    from hookloop.selfplay.config import SelfPlayConfig
    from hookloop.sequences.config import SequenceConfig
    from hookloop.supervised.config import SupervisedConfig

Live = Any
Plain = Any

SETTINGS = {
    "rl": "hookloop.rl.config:RLConfig",
    "supervised": "hookloop.supervised.config:SupervisedConfig",
    "selfplay": "hookloop.selfplay.config:SelfPlayConfig",
    "sequences": "hookloop.sequences.config:SequenceConfig",
}


SHARED_BY_LEARNERS = ("rl", "supervised")


class Result(Protocol):
    """How a run ended, whatever kind it is; a dataclass with more fields than these."""

    @property
    def outcome(self) -> str:
        """Completed, stopped, interrupted or failed."""
        ...

    @property
    def loop(self) -> LoopResult:
        """How the loop ended."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """A trainer that is ready to run, and how to speak of it."""

    trainer: Live
    model: Live
    train: Callable[[], Result]
    in_words: Callable[[Live], str]
    """What a result has reached."""

    @property
    def hooks(self) -> HookManager:
        """Its hooks."""
        return self.trainer.hooks

    @property
    def state(self) -> TrainerState:
        """Its state."""
        return self.trainer.state


def read_settings(workload: str, settings: Mapping[str, Plain]) -> RunSettings:
    """Return the settings of a run as what they are."""
    if workload not in SETTINGS:
        raise UnknownNameError("kind of run", workload, SETTINGS)
    module, _, name = SETTINGS[workload].partition(":")
    return getattr(importlib.import_module(module), name).model_validate(settings)


def settle(settings: RunSettings, runs_dir: Path) -> RunSettings:
    """Replace what could mean something else tomorrow by what it means now; refuse what cannot be trained."""
    if settings.workload == "selfplay":
        from hookloop.selfplay.library import load_game

        load_game(cast("SelfPlayConfig", settings).game.name)
    return pin_teachers(cast("RLConfig", settings), runs_dir) if settings.workload == "rl" else settings


def own_hooks(settings: RunSettings, folder: RunFolder) -> list[object]:
    """Return the hooks that only this kind of run has. Imports torch."""
    return _HOOKS[settings.workload](settings, folder)


def saves_within_epochs(settings: RunSettings) -> str | None:
    """Return when a run is saved within its epochs, too; None if it is not, or cannot be."""
    steps = cast("SupervisedConfig", settings).training.save_every_steps if settings.workload == "supervised" else None
    return None if steps is None else f"every {steps} optimizer_steps"


def build_job(settings: RunSettings, *, hooks: HookManager, seed: int) -> Job:
    """Build everything a run needs. Imports torch."""
    learners = hooks.ranks.world_size
    if learners > 1 and settings.workload not in SHARED_BY_LEARNERS:
        raise ConfigError(
            f"A run of the kind {settings.workload!r} is trained by one process, not by {learners}; start it without "
            f"torchrun. Several can train: {', '.join(SHARED_BY_LEARNERS)}."
        )
    return _BUILD[settings.workload](settings, hooks=hooks, seed=seed)


def _rl_hooks(settings: RLConfig, folder: RunFolder) -> list[object]:
    from hookloop.hooks import GoalHook, create_default_evaluation_hooks
    from hookloop.hooks.evaluation_presets import evaluation_hooks
    from hookloop.hooks.replays import RunReplays
    from hookloop.stats import EvaluationTasks

    wanted, curriculum = settings.evaluation, settings.curriculum
    hooks: list[object] = [] if settings.stop_at_return is None else [GoalHook(settings.stop_at_return)]
    if curriculum is not None:
        if wanted.schedule is not None:
            raise ConfigError(
                f"evaluation.schedule is {wanted.schedule!r}, but a run with a curriculum is evaluated by its lessons; "
                "set curriculum.eval_frequency and curriculum.micro_eval_frequency instead."
            )
        return [*hooks, *create_default_evaluation_hooks(curriculum)]
    replays = RunReplays(folder.replays, wanted.keep_replays)
    stats_url = settings.stats_url or folder.stats_file
    return [*hooks, *evaluation_hooks(wanted, replays=replays, open_tasks=lambda: EvaluationTasks(stats_url))]


def _rl_job(settings: RLConfig, *, hooks: HookManager, seed: int) -> Job:
    from hookloop.rl.build import build_trainer

    trainer = build_trainer(settings, hooks=hooks, seed=seed, second_signal="exit", find_teacher=find_teacher)
    return Job(trainer, trainer.policy, lambda: trainer.train(settings.total_env_steps), _rl_in_words)


def _rl_in_words(result: Live) -> str:
    reached = "no episode finished" if result.mean_return is None else f"mean return {result.mean_return:.1f}"
    speed = result.env_steps / max(result.seconds, 1e-9)
    return f"{reached} after {result.env_steps} steps in {result.seconds:.1f} s ({speed:.0f} steps/s)"


def _supervised_hooks(settings: SupervisedConfig, folder: RunFolder) -> list[object]:
    from hookloop.hooks import EarlyStoppingHook, MemoryAdviceHook

    wanted = settings.training
    if settings.patience is None:
        return [MemoryAdviceHook()]
    return [EarlyStoppingHook(settings.patience, metric=wanted.monitor, mode=wanted.mode), MemoryAdviceHook()]


def _supervised_job(settings: SupervisedConfig, *, hooks: HookManager, seed: int) -> Job:
    from hookloop.supervised.build import build_trainer

    if settings.training.checkpoint_dir is not None:
        raise ConfigError(
            f"training.checkpoint_dir is {settings.training.checkpoint_dir!r}, but a run saves in its own folder; "
            "leave it out, and see the settings below checkpoints."
        )
    if settings.nan_policy != "off":  # one judge of the same gradients is enough
        training = settings.training.model_copy(update={"halt_after_bad_gradients": 0})
        settings = settings.model_copy(update={"training": training})
    trainer = build_trainer(settings, hooks=hooks, seed=seed, second_signal="exit")
    return Job(
        trainer, trainer.model, trainer.run, lambda result: _supervised_in_words(result, settings.training.monitor)
    )


def _supervised_in_words(result: Live, monitor: str) -> str:
    metric = monitor if any(row.get(monitor) is not None for row in result.rows) else "loss"
    best = "" if result.best_metric is None else f", {metric} {result.best_metric:.4g} in epoch {result.best_epoch}"
    loss = "no epoch completed" if result.final_loss is None else f"loss {result.final_loss:.4g}{best}"
    return f"{loss}, after {result.optimizer_steps} optimizer steps in {result.seconds:.1f} s"


def _selfplay_hooks(settings: SelfPlayConfig, folder: RunFolder) -> list[object]:
    from hookloop.hooks import GameReplayHook, GameSnapshotHook, GameStatisticsHook, LeagueHook
    from hookloop.selfplay import League

    hooks: list[object] = [GameStatisticsHook(), GameSnapshotHook(folder.game_file)]
    kept, rated, game = settings.replays, settings.evaluation, settings.game
    if kept.schedule is not None:
        hooks.append(GameReplayHook(folder.replays, kept.schedule, kept.keep, matches=kept.matches))
    if rated.schedule is not None:
        league = League(game.name, max_moves=game.max_moves, **rated.model_dump(exclude={"schedule"}))
        hooks.append(LeagueHook(league, rated.schedule))
    return hooks


def _selfplay_job(settings: SelfPlayConfig, *, hooks: HookManager, seed: int) -> Job:
    from hookloop.selfplay.build import build_trainer

    trainer = build_trainer(settings, hooks=hooks, seed=seed, second_signal="exit")
    return Job(trainer, trainer.policy, lambda: trainer.train(settings.total_env_steps), _selfplay_in_words)


def _selfplay_in_words(result: Live) -> str:
    speed = result.env_steps / max(result.seconds, 1e-9)
    return f"{result.episodes} games, {result.env_steps} moves in {result.seconds:.1f} s ({speed:.0f} moves/s)"


def _sequence_hooks(settings: SequenceConfig, folder: RunFolder) -> list[object]:
    from hookloop.hooks import create_default_evaluation_hooks

    return [*create_default_evaluation_hooks(settings.curriculum)]


def _sequence_job(settings: SequenceConfig, *, hooks: HookManager, seed: int) -> Job:
    from hookloop.sequences.build import build_trainer

    trainer = build_trainer(settings, hooks=hooks, seed=seed, second_signal="exit")
    return Job(trainer, trainer.model, lambda: trainer.train(settings.total_env_steps), _sequences_in_words)


def _sequences_in_words(result: Live) -> str:
    reached = "nothing drawn" if result.mean_return is None else f"mean reward {result.mean_return:.3f}"
    drawn = f"{result.episodes} completions, {result.env_steps} symbols in {result.seconds:.1f} s"
    return f"{reached} after {drawn} ({result.env_steps / max(result.seconds, 1e-9):.0f} symbols/s)"


_HOOKS: dict[str, Callable[..., list[object]]] = {
    "rl": _rl_hooks,
    "supervised": _supervised_hooks,
    "selfplay": _selfplay_hooks,
    "sequences": _sequence_hooks,
}
_BUILD: dict[str, Callable[..., Job]] = {
    "rl": _rl_job,
    "supervised": _supervised_job,
    "selfplay": _selfplay_job,
    "sequences": _sequence_job,
}
