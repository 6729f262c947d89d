"""Trackers: replays of a run's statistics to files and services. The names below are imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "EpochRows": "base",
    "JsonlTracker": "jsonl",
    "Reading": "base",
    "Replay": "replay",
    "Source": "base",
    "StopsRuns": "base",
    "TensorBoardTracker": "tensorboard",
    "TrackedRun": "base",
    "Tracker": "base",
    "TrackerFeed": "feed",
    "TrackerHealth": "feed",
    "WandbTracker": "wandb",
    "make_tracker": "registry",
    "make_trackers": "registry",
    "readings": "base",
    "tracker_sources": "registry",
}

__all__ = [
    "EpochRows",
    "JsonlTracker",
    "Reading",
    "Replay",
    "Source",
    "StopsRuns",
    "TensorBoardTracker",
    "TrackedRun",
    "Tracker",
    "TrackerFeed",
    "TrackerHealth",
    "WandbTracker",
    "make_tracker",
    "make_trackers",
    "readings",
    "tracker_sources",
]

if TYPE_CHECKING:
    from hookloop.trackers.base import EpochRows, Reading, Source, StopsRuns, TrackedRun, Tracker, readings
    from hookloop.trackers.feed import TrackerFeed, TrackerHealth
    from hookloop.trackers.jsonl import JsonlTracker
    from hookloop.trackers.registry import make_tracker, make_trackers, tracker_sources
    from hookloop.trackers.replay import Replay
    from hookloop.trackers.tensorboard import TensorBoardTracker
    from hookloop.trackers.wandb import WandbTracker


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
