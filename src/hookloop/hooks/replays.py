"""Recorded episodes of evaluations, in the folder of the run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from hookloop.evaluation.results import EvaluationResult, Key, PlayedEpisode
from hookloop.replays import Replay, ReplayFolder

CLOCKS = ("epochs", "env_steps", "policy_version")


class RunReplays:
    """Keeps the recorded episodes of results as replays.

    Args:
        folder: Where; such as ``replays`` in the folder of a run.
        keep: The newest to keep.
    """

    def __init__(self, folder: str | Path, keep: int = 100) -> None:
        self.folder = ReplayFolder(Path(folder), keep=keep)

    def keep(self, result: EvaluationResult) -> dict[str, str]:
        """Write the episodes that a result holds records of, and return where they are, by name, in their order."""
        found: dict[str, str] = {}
        for key, episode in result.records:
            assert episode.record is not None
            parts = (int(result.clocks.get("env_steps", 0)), result.task, key[1], f"{episode.number:04d}")
            replay = Replay(_about(result, key, episode), episode.record.arrays)
            path = self.folder.save(parts, replay)
            found[path.stem] = path.absolute().as_uri()
        return found


def _about(result: EvaluationResult, key: Key, episode: PlayedEpisode) -> dict[str, Any]:
    assert episode.record is not None
    about = {
        **episode.record.about,
        "task": result.task,
        "category": key[0],
        "simulation": key[1],
        "greedy": result.greedy,
        "checkpoint": result.checkpoint,
        **{clock: result.clocks[clock] for clock in CLOCKS if clock in result.clocks},
    }
    about["return"] = episode.return_ if math.isfinite(episode.return_) else str(episode.return_)
    return about
