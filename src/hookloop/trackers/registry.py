"""The trackers that settings can name: those that come with hookloop, and those of the entry point group.

A third party declares ``[project.entry-points."hookloop.trackers"]``: a class or function that is called with the run's
folder and the options of the settings, and returns a ``Tracker``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from hookloop.errors import ConfigError, NameClashError, UnknownNameError
from hookloop.trackers.base import Tracker

Plain = Any
TrackerType = Callable[..., Tracker]

GROUP = "hookloop.trackers"
ALWAYS = "jsonl"

BUILT_IN = {
    "jsonl": "hookloop.trackers.jsonl:JsonlTracker",
    "tensorboard": "hookloop.trackers.tensorboard:TensorBoardTracker",
    "trackio": "hookloop.trackers.wandb:trackio_tracker",
    "wandb": "hookloop.trackers.wandb:WandbTracker",
}


@dataclass(frozen=True, slots=True)
class TrackerSource:
    """A tracker that can be named, and where it comes from."""

    name: str
    origin: str
    load: Callable[[], TrackerType]


def tracker_sources() -> dict[str, TrackerSource]:
    """Return all trackers by name; nothing is imported by looking."""
    found = {name: TrackerSource(name, "hookloop", partial(_load, target)) for name, target in BUILT_IN.items()}
    for point in entry_points(group=GROUP):
        origin = point.dist.name if point.dist is not None else "unknown"
        load = partial(_refuse if point.name in found else _load_point, point, origin)
        found[point.name] = TrackerSource(point.name, origin, load)
    return dict(sorted(found.items()))


def make_tracker(name: str, folder: Path, options: Mapping[str, Plain] | None = None) -> Tracker:
    """Return the tracker called ``name`` for the run in ``folder``."""
    sources = tracker_sources()
    if name not in sources:
        raise UnknownNameError("tracker", name, sources)
    tracker_type, options = sources[name].load(), dict(options or {})
    parameters = [each for each in inspect.signature(tracker_type).parameters.values()][1:]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
    known = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
    for option in options:
        if option not in known and not takes_any:
            raise UnknownNameError("option", option, known, where=f"of the tracker {name!r}")
    return tracker_type(folder, **options)


def make_trackers(wanted: Mapping[str, Mapping[str, Plain]], folder: Path) -> dict[str, Tracker]:
    """Return the trackers that settings ask for, by name, and the jsonl file, which is always written.

    Args:
        wanted: The options of each tracker by its name.
        folder: The run's folder.
    """
    return {name: make_tracker(name, folder, options) for name, options in {ALWAYS: {}, **wanted}.items()}


def _load(target: str) -> TrackerType:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _load_point(point: EntryPoint, origin: str) -> TrackerType:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"The tracker {point.name!r} of {origin} cannot be imported: {error}") from error


def _refuse(point: EntryPoint, origin: str) -> TrackerType:
    raise NameClashError(
        f"The tracker name {point.name!r} is claimed by {origin} ({point.value}) and by somebody else; uninstall one, "
        "or declare yours under another name."
    )
