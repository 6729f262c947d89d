"""Publish durable checkpoints elsewhere, under names that never change their content."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from hookloop.checkpoints.manifest import FILE_NAME
from hookloop.checkpoints.store import Checkpoint
from hookloop.checkpoints.writer import Writer
from hookloop.errors import LocationError, MissingExtraError
from hookloop.storage.locations import publish_folder

log = logging.getLogger("hookloop.checkpoints")


class Sink(Protocol):
    """A place for checkpoints."""

    kind: str
    """What its URIs are: ``uri`` or ``wandb``."""

    def publish(self, checkpoint: Checkpoint) -> str:
        """Copy a durable checkpoint there, wait until it is whole, and return its URI; again is harmless."""
        ...


class UriSink:
    """Copies checkpoints to ``<uri>/<run>/<name>-<hash>``: file://, s3://, gs://, memory:// and whatever fsspec has."""

    kind = "uri"

    def __init__(self, uri: str) -> None:
        self._uri = uri.rstrip("/")

    def publish(self, checkpoint: Checkpoint) -> str:
        """Copy the folder, its manifest last."""
        manifest = checkpoint.manifest
        run = manifest.run_id or "run"
        if not FILE_NAME.fullmatch(run):  # it may come from a checkpoint that somebody else has written
            raise LocationError(f"{checkpoint.path} has the run_id {run!r:.100}, which is no name for a folder.")
        target = f"{self._uri}/{run}/{manifest.name}-{manifest.sha256[:16]}"
        publish_folder(checkpoint.path, target)
        return target


class WandbSink:
    """Logs checkpoints as artifacts of a W&B run.

    Args:
        run: What ``wandb.init`` returned; offline runs work, their artifacts go out with ``wandb sync``.
        name: The artifact's name; by default that of the run.
    """

    kind = "wandb"

    def __init__(self, run: Any, name: str | None = None) -> None:
        self._run = run
        self._name = name or f"{run.name or run.id}-checkpoint"

    def publish(self, checkpoint: Checkpoint) -> str:
        """Log an artifact and, when online, wait until it is uploaded."""
        wandb = _import_wandb()
        manifest = checkpoint.manifest
        is_final = manifest.kind == "final"
        name = f"{self._name}{'-final' if is_final else ''}"
        about = {
            **manifest.metadata, "metrics": manifest.metrics, "clocks": manifest.clocks,
            "checkpoint": checkpoint.id, "exactness": manifest.exactness,
        }  # fmt: skip
        artifact = wandb.Artifact(name, type="model", metadata=about)
        artifact.add_dir(str(checkpoint.path))
        logged = self._run.log_artifact(artifact, aliases=[manifest.name, "latest"])
        if getattr(self._run, "offline", False):
            return f"wandb-offline://{self._run.id}/{name}:{manifest.name}"
        logged.wait()
        return f"wandb://{logged.qualified_name}"


class Publisher:
    """Publishes one checkpoint at a time in a thread.

    Args:
        sinks: Where to.
        hold: Told of a checkpoint before and after, so that nobody deletes it meanwhile.
    """

    def __init__(self, sinks: Sequence[Sink], hold: Callable[[str, bool], None]) -> None:
        self._sinks = list(sinks)
        self._hold = hold
        self._published: dict[str, str] = {}
        self._writer: Writer[None] = Writer("checkpoint-publisher")

    def start(self, checkpoint: Checkpoint) -> bool:
        """Begin to publish; False if the one before is still under way, then this one is left out."""
        if self._writer.is_busy:
            log.warning("%s is not published: the one before it is still under way", checkpoint.name)
            return False
        self._hold(checkpoint.name, True)
        self._writer.start(lambda: self._publish(checkpoint))
        return True

    def take(self, *, wait: bool = False) -> dict[str, str]:
        """Return the URIs of what was published since the last call, by kind; raise if one place failed."""
        self._writer.take(wait=wait)
        if self._writer.is_busy:
            return {}
        published, self._published = self._published, {}
        return published

    def close(self) -> None:
        """Wait for what is under way and end the thread."""
        self._writer.close()

    def _publish(self, checkpoint: Checkpoint) -> None:
        with contextlib.ExitStack() as jobs:  # each is done, whatever becomes of the others
            jobs.callback(self._hold, checkpoint.name, False)
            for sink in reversed(self._sinks):
                jobs.callback(self._publish_to, sink, checkpoint)

    def _publish_to(self, sink: Sink, checkpoint: Checkpoint) -> None:
        self._published[sink.kind] = sink.publish(checkpoint)


def _import_wandb() -> Any:
    try:
        import wandb  # pyright: ignore[reportMissingImports]  # an extra
    except ModuleNotFoundError as error:
        raise MissingExtraError("WandbSink", "wandb") from error
    return wandb
