"""How a run ended, down to the last bit, and where two endings differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hookloop.checkpoints import CheckpointStore
from hookloop.stats import StatsReader

# What two runs with the same bits do not share: time, names, and how often they were interrupted.
VOLATILE = {"state/clocks/seconds", "state/attempt", "state/run_id"}
# Hooks that measure time itself, or are due by it.
TIMED = ("stopwatch", "machine", "progress")
_PATHS = {"state/latest_checkpoint_uri"}

Ending = dict[str, Any]


def ending(folder: Path) -> Ending:
    """Return every value and every tensor of a run's final checkpoint by its path, those that vary left out."""
    found = CheckpointStore(folder).read_latest()
    assert found is not None, f"{folder} has no checkpoint"
    checkpoint, state = found
    assert checkpoint.manifest.kind == "final", f"the last checkpoint, {checkpoint.name}, is not final"
    values = {path: value for path, value in _leaves(state, "") if path not in VOLATILE and not _is_timed(path)}
    for path in _PATHS & set(values):
        values[path] = Path(str(values[path])).name
    for part in ("model", "optimizer"):
        file = checkpoint.path / f"{part}.safetensors"
        values[file.name] = file.read_bytes() if file.exists() else None
    return {**values, **_statistics(stats_of(folder)), "name": checkpoint.name, "metrics": checkpoint.manifest.metrics}


def _is_timed(path: str) -> bool:
    return path.startswith("hooks/hooks/") and any(f"/{name}/" in path for name in TIMED)


def stats_of(folder: Path) -> Path:
    """Return where the statistics of a run are whose checkpoints are in ``folder``."""
    return folder.with_suffix(".sqlite")


def _statistics(file: Path) -> Ending:
    """Return every row of the statistics that two runs with the same bits share."""
    if not file.exists():
        return {}
    with StatsReader(file) as reader:
        rows = reader.sql(
            "SELECT epoch, env_steps, optimizer_steps, key, value, hook FROM metrics ORDER BY 1, 4, 6", 100_000
        )
        metrics = [row for row in rows if not _is_timed(f"hooks/hooks/{row['hook']}/")]
        epochs = reader.sql("SELECT epoch, env_steps, optimizer_steps, episodes FROM epochs ORDER BY 1", 100_000)
        episodes = reader.sql('SELECT epoch, sequence, "return", length FROM episodes ORDER BY 1, 2', 100_000)
    assert epochs, f"{file} holds no epoch"
    return {"statistics/metrics": metrics, "statistics/epochs": epochs, "statistics/episodes": episodes}


def require_same(one: Ending, other: Ending) -> None:
    """Require that two runs ended with the same bits."""
    found = differences(one, other)
    assert not found, "\n".join(["the runs differ:", *found[:12]])


def differences(one: Ending, other: Ending) -> list[str]:
    """Return the paths at which two endings differ, with the values."""
    return [
        f"{path}: {one.get(path)!r:.200} against {other.get(path)!r:.200}"
        for path in sorted({*one, *other})
        if path not in one or path not in other or one[path] != other[path]
    ]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}/{key}" if path else str(key))
    elif isinstance(value, list):
        yield f"{path}#", len(value)
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}/{index}")
    elif isinstance(value, torch.Tensor):
        yield path, _bits(value.numpy())
    elif isinstance(value, np.ndarray | np.generic):
        yield path, _bits(np.asarray(value))
    else:
        yield path, repr(value)  # tells 1 from 1.0, and 0.0 from -0.0


def _bits(array: Any) -> tuple[str, tuple[int, ...], bytes]:
    return str(array.dtype), array.shape, array.tobytes()
