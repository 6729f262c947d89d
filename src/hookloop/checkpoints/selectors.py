"""Words for a checkpoint: ``latest``, ``best``, ``final``, a step, an epoch, a name, a path, a URI."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from hookloop.checkpoints.folder import read_manifest
from hookloop.checkpoints.manifest import MANIFEST, MAX_FILES, NAME
from hookloop.checkpoints.retention import Retention
from hookloop.checkpoints.store import Checkpoint, CheckpointStore
from hookloop.errors import NoCheckpointError
from hookloop.storage.locations import fetch_folder, is_uri

WORDS = ("latest", "best", "final")
# What a person writes for an epoch, and what other trainers name their files.
_EPOCH = re.compile(r"(?:checkpoint[_-])?epoch[_-]?(\d{1,18})(?:\.\w+)?", re.ASCII)
_STEP = re.compile(r"\d{1,18}", re.ASCII)


@contextmanager
def selected(store: CheckpointStore, selector: str | Path, retention: Retention) -> Generator[Checkpoint]:
    """Give the checkpoint a selector stands for; one that had to be fetched is gone again afterwards."""
    text = str(selector)
    if is_uri(text) and not text.startswith("file://"):
        with tempfile.TemporaryDirectory(prefix="hookloop-") as scratch:
            folder = Path(scratch) / "checkpoint"
            folder.mkdir()
            fetch_folder(text, folder, max_bytes=store.max_bytes, max_files=MAX_FILES + 1)
            yield Checkpoint(read_manifest(folder), folder)
    else:
        yield find(store, _local_path(text) if is_uri(text) else text, retention)


def find(store: CheckpointStore, selector: str, retention: Retention) -> Checkpoint:
    """Return the local checkpoint a selector stands for; only ``latest`` looks past a damaged one."""
    if selector == "latest":
        return store.latest()
    if selector == "best":
        best = retention.best([each.manifest for each in store.sound()])
        if not best:
            raise NoCheckpointError(f"No checkpoint in {store.folder} has the metric {retention.metric!r}.")
        return store.look(best[0].name)
    if selector == "final":
        return _last(store, [each for each in store.sound() if each.manifest.kind == "final"], "that is final")
    if _STEP.fullmatch(selector):
        return _last(store, [each for each in store.sound() if each.step == int(selector)], f"at step {selector}")
    if NAME.fullmatch(selector):
        return _last(store, [each for each in store.sound() if each.name == selector], f"named {selector}")
    return _by_path_or_epoch(store, selector)


def _local_path(uri: str) -> str:
    """Return the path in a file URI, whose odd letters may be written as they are or as %20."""
    path = uri.removeprefix("file://")
    return path if os.path.lexists(path) else unquote(path)


def _by_path_or_epoch(store: CheckpointStore, selector: str) -> Checkpoint:
    path = Path(selector)
    if os.path.isfile(path / MANIFEST):
        return Checkpoint(read_manifest(path), path)
    epoch = _EPOCH.fullmatch(path.name)
    if epoch is None:
        raise NoCheckpointError(
            f"{selector!r:.200} is no checkpoint. Say {', '.join(WORDS)}, a step such as 12288, an epoch such as "
            f"epoch5, or the path of a folder with a {MANIFEST}."
        )
    if path.parent != Path():  # ./checkpoints/checkpoint_epoch0005.pt names the folder, too
        store = CheckpointStore(path.parent, max_bytes=store.max_bytes)
    number = int(epoch[1])
    return _last(store, [each for each in store.sound() if each.manifest.epochs == number], f"of epoch {number}")


def _last(store: CheckpointStore, found: list[Checkpoint], what: str) -> Checkpoint:
    if found:
        return found[-1]
    there = [f"{each.name} (epoch {each.manifest.epochs})" for each in store.sound()]
    others = f"There are {', '.join(there[-8:])}." if there else "There is none at all."
    raise NoCheckpointError(f"There is no checkpoint {what} in {store.folder}. {others}")
