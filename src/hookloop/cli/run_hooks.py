"""The hooks that ``hookloop train`` gives every run. Imports torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from hookloop.cli.workloads import own_hooks, saves_within_epochs
from hookloop.config.settings import RunSettings
from hookloop.runs.folder import RunConfig, RunFolder

if TYPE_CHECKING:
    from hookloop.checkpoints import CheckpointManager
    from hookloop.storage.lock import RunLock

Display = Literal["auto", "live", "plain", "json", "off"]


def run_hooks(
    folder: RunFolder,
    config: RunConfig,
    settings: RunSettings,
    display: Display,
    *,
    resume: str | None,
    lock: RunLock | None,
) -> list[object]:
    """Return everything that happens in a run besides training, in order."""
    from hookloop.hooks import NanGuardHook

    guards: list[object] = [] if settings.nan_policy == "off" else [NanGuardHook(settings.nan_policy)]
    return [
        *guards,
        *own_hooks(settings, folder),
        _watching(folder, config, settings, display),
        _saving(folder, config, settings, resume=resume, lock=lock),
    ]


def resolved(display: Display) -> Display:
    """Return what ``auto`` means here."""
    from hookloop.display import can_draw

    return display if display != "auto" else "live" if can_draw() else "plain"


def _watching(folder: RunFolder, config: RunConfig, settings: RunSettings, display: Display) -> object:
    from hookloop.hooks import MetricsHook, TrackerHook
    from hookloop.stats import StatsClient
    from hookloop.trackers import make_trackers

    stats_url, measured = settings.stats_url or folder.stats_file, settings.metrics
    trackers = make_trackers(settings.trackers, folder.path)
    total, clock = config.goal

    def client() -> StatsClient:
        return StatsClient(stats_url, run_id=config.run_id)

    return MetricsHook(
        stats_client=client,
        verbose=False,
        log_every=measured.log_every,
        times_every=measured.times_every,
        gradients=measured.gradients,
        monitor_seconds=measured.monitor_seconds,
        heartbeat_file=folder.heartbeat_file,
        total_steps=total,
        clock=clock,
        trackers=TrackerHook(trackers, stats_url=stats_url, run_id=config.run_id, folder=folder.path),
        progress=_progress(display, folder, config),
        keeps_episodes=settings.stats_episodes,
        name=folder.name,
        recipe=config.recipe,
        seed=config.seed,
        config=config.settings,
    )


def _saving(
    folder: RunFolder, config: RunConfig, settings: RunSettings, *, resume: str | None, lock: RunLock | None
) -> object:
    from hookloop.hooks import CheckpointHook

    wanted = settings.checkpoints
    return CheckpointHook(
        _manager(folder, config, settings, lock),
        wandb_checkpoint_interval=wanted.publish_interval,
        schedule=wanted.schedule,
        resume=resume or False,
        sinks=_sinks(wanted.publish_to),
        strict=False,
        max_failed_saves=wanted.max_failed_saves,
        within_epochs=saves_within_epochs(settings),
    )


def _progress(display: Display, folder: RunFolder, config: RunConfig) -> object | None:
    from hookloop.hooks import DisplayHook, ProgressHook

    total, clock = config.goal
    if resolved(display) == "live":
        return DisplayHook(total, clock, run=folder.name, recipe=config.recipe, device="cpu")
    if display == "off":
        return None
    return ProgressHook(style="json" if display == "json" else "plain", total_steps=total, clock=clock)


def _manager(folder: RunFolder, config: RunConfig, settings: RunSettings, lock: RunLock | None) -> CheckpointManager:
    from hookloop.checkpoints import CheckpointManager, Retention

    wanted = settings.checkpoints
    retention = Retention(wanted.keep_last, wanted.keep_best, wanted.keep_every, wanted.metric, wanted.mode)
    return CheckpointManager(
        folder.checkpoints,
        retention=retention,
        asynchronous=wanted.asynchronous,
        lock=lock,
        config_sha256=config.sha256,
    )


def _sinks(publish_to: str | None) -> list[Any]:
    from hookloop.checkpoints.publishing import UriSink

    return [] if publish_to is None else [UriSink(publish_to)]
