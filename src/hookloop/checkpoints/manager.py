"""Saves and loads the checkpoints of a run: snapshot, write, prune, select."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hookloop.checkpoints.environment import current_environment
from hookloop.checkpoints.manifest import MAX_MANIFEST_BYTES, FileEntry, Kind, Manifest, name_of
from hookloop.checkpoints.retention import Retention
from hookloop.checkpoints.selectors import selected
from hookloop.checkpoints.store import DEFAULT_MAX_BYTES, Checkpoint, CheckpointStore, read_state
from hookloop.checkpoints.writer import Writer
from hookloop.errors import CheckpointError, DamagedCheckpointError, NoCheckpointError
from hookloop.storage.disk import Disk
from hookloop.storage.lock import RunLock

Plain = Any

log = logging.getLogger("hookloop.checkpoints")

FINITE_PARTS = ("model", "optimizer")


@dataclass(frozen=True, slots=True)
class Description:
    """What a manifest says of a checkpoint besides its files."""

    step: int
    clock: str = "epochs"
    clocks: Mapping[str, float] = field(default_factory=dict[str, float])
    run_id: str = ""
    attempt: int = 1
    kind: Kind = "periodic"
    exactness: str = "bit-exact"
    inexact_because: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    metadata: Mapping[str, Plain] = field(default_factory=dict[str, Plain])

    @property
    def name(self) -> str:
        """The name of the checkpoint."""
        return name_of(self.step, is_final=self.kind == "final")


class CheckpointManager:
    """The checkpoints of one run.

    Args:
        folder: Where they are; made on the first save.
        retention: Which to keep.
        asynchronous: Write in a thread; training pays for one copy in memory.
        when_busy: What a periodic save does while the one before is still being written: ``wait`` or ``skip``.
        lock: The run's lock, if the caller holds one; by default ``folder`` gets a lock of its own.
        config_sha256: The hash of the run's configuration, for the manifests.
        disk: What carries out the writes.
        max_bytes: Larger checkpoints are not read.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        retention: Retention | None = None,
        asynchronous: bool = True,
        when_busy: Literal["wait", "skip"] = "wait",
        lock: RunLock | None = None,
        config_sha256: str = "",
        disk: Disk | None = None,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        self.store = CheckpointStore(Path(folder), disk=disk, max_bytes=max_bytes)
        self.retention = Retention() if retention is None else retention
        self.config_sha256 = config_sha256
        self.parent: str | None = None
        """The checkpoint the next one comes after."""
        self.restored: Checkpoint | None = None
        """What the run went on from in this process."""
        self._asynchronous = asynchronous
        self.when_busy = when_busy
        self._own_lock = RunLock(Path(folder)) if lock is None else None
        self._is_open = False
        self._writer: Writer[Checkpoint | None] = Writer("checkpoint-writer")
        self._is_reserving = False
        self._before_write: list[Callable[[], None]] = []
        self._buffers: Any = None
        self._held: set[str] = set()
        self._written: list[Checkpoint] = []

    @property
    def folder(self) -> Path:
        """Where the checkpoints are."""
        return self.store.folder

    # Saving

    def open(self) -> None:
        """Take the lock and clear away what a killed process left; ``save`` does it by itself."""
        if not self._is_open:
            if self._own_lock is not None:
                self._own_lock.acquire()
            self.store.prepare()
            self._is_open = True

    def save(self, state: Plain, about: Description, *, parts: Mapping[str, tuple[str, ...]] | None = None) -> bool:
        """Copy the state and write it; False if it was left out: it is there already, or the writer is busy.

        Args:
            state: Strict JSON plus tensors, which may be live: they are copied before this returns.
            about: What the manifest says.
            parts: Branches of the state that get a file of their own; those named ``model`` and ``optimizer`` are
                refused if they hold NaN or infinity.
        """
        self.open()
        if self._is_reserving:  # not a write that a save could be left out for
            self._take(wait=True)
            self._is_reserving = False
        if self._writer.is_busy and self.when_busy == "skip" and about.kind == "periodic":
            log.warning("%s is left out: the checkpoint before is still being written", about.name)
            return False
        self._take(wait=True)  # first: its buffers are the ones to copy into
        if self.store.has(about.name):
            return False
        self._require_describable(about)
        snapshot = self._snapshot_buffers().take(state, parts or {})
        if self._asynchronous:
            self._writer.start(lambda: self._write(snapshot, about))
        else:
            self._written.append(self._write(snapshot, about))
        return True

    def reserve(self, state: Plain, *, parts: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """Get hold of the memory that a save of such a state needs, in the writer's thread: a first touch is slow."""
        if self._asynchronous and self._buffers is None:  # else a save has been there first
            self._is_reserving = True
            buffers = self._snapshot_buffers()
            self._writer.start(lambda: buffers.reserve(state, parts or {}))

    def collect(self, *, wait: bool = False) -> list[Checkpoint]:
        """Return the checkpoints that became durable since the last call; raise if a write failed.

        The one a run goes on from is among them: what is in it was saved before anybody was told of it.
        """
        self._take(wait=wait)
        written, self._written = self._written, []
        return written

    def close(self) -> None:
        """Wait for the writer, and give the lock back; raise if a write failed that nobody has been told of."""
        try:
            self._take(wait=True)
        finally:
            self._writer.close()
            self._before_write.clear()
            if self._own_lock is not None:
                self._own_lock.release()
            self._is_open = False

    def __enter__(self) -> CheckpointManager:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Loading

    def load(self, selector: str | Path = "latest") -> tuple[Checkpoint, Plain]:
        """Return a checkpoint and its state; a damaged one raises, except that ``latest`` looks for the one before."""
        self._take(wait=True)
        if selector == "latest":
            found = self.store.read_latest(sets_aside=False)
            if found is None:
                raise NoCheckpointError(f"There is no checkpoint in {self.folder} yet.")
            return found
        with selected(self.store, selector, self.retention) as checkpoint:
            return checkpoint, read_state(checkpoint, max_bytes=self.store.max_bytes)

    def load_latest(self) -> Plain | None:
        """Return the state of the newest sound checkpoint; None if there is none yet."""
        self._take(wait=True)
        found = self.store.read_latest()
        return None if found is None else found[1]

    def restore(self, selector: str = "latest") -> tuple[Checkpoint, Plain] | None:
        """Return what the run goes on from, and set aside what is newer: the run's future begins there.

        None if there is no checkpoint yet. Damaged ones are set aside, and the newest sound one is used.
        """
        self.open()
        found = self.store.read_latest() if selector == "latest" else self.load(selector)
        if found is None:
            return None
        checkpoint = found[0]
        is_ours = self.is_ours(checkpoint)
        given_up = self.store.supersede_after(checkpoint.name if is_ours else None)
        if given_up:
            log.warning("%s set aside: the run goes on from %s", ", ".join(given_up), checkpoint.name)
        self.parent = checkpoint.name if is_ours else checkpoint.id
        self.restored = checkpoint
        if is_ours and checkpoint.manifest.kind != "interrupted":  # a run without an interrupt has no such one
            self._written.append(checkpoint)
        return found

    def is_ours(self, checkpoint: Checkpoint) -> bool:
        """Tell whether a checkpoint is one of this run's own, however its path was written."""
        return checkpoint.path.parent.resolve() == self.store.folder.resolve()

    # Inside

    def before_write(self, act: Callable[[], None]) -> None:
        """Have something done before each checkpoint is written, in the thread that writes it."""
        self._before_write.append(act)

    def hold(self, name: str, held: bool = True) -> None:
        """Keep a checkpoint while somebody reads it, whatever the retention says."""
        (self._held.add if held else self._held.discard)(name)

    def _take(self, *, wait: bool) -> None:
        written = self._writer.take(wait=wait)
        if written is not None:
            self._written.append(written)

    def _snapshot_buffers(self) -> Any:
        if self._buffers is None:
            from hookloop.checkpoints.snapshot import SnapshotBuffers  # with torch, which only a save needs

            self._buffers = SnapshotBuffers()
        return self._buffers

    def _write(self, snapshot: Any, about: Description) -> Checkpoint:
        """Write a snapshot, then let go of what the rules no longer keep; in the writer's thread."""
        snapshot.require_finite(FINITE_PARTS)
        for act in self._before_write:
            act()
        written = self.store.write(about.name, snapshot.files(), lambda files: self._manifest(about, files))
        self.parent = written.name
        self._prune(keep={written.name, *self._held})
        return written

    def _prune(self, keep: Collection[str]) -> None:
        """Let go of old checkpoints; whatever fails here, the new one is durable, and that is what was promised."""
        try:
            sound = [each.manifest for each in self.store.sound()]
            expendable = self.retention.expendable(sound, {*keep, *self.store.pins()})
        except (OSError, CheckpointError) as error:
            log.warning("no old checkpoint is removed: %s", error)
            return
        for name in expendable:
            try:
                self.store.delete(name)
            except OSError as error:
                log.warning("the old checkpoint %s could not be removed: %s", name, error)

    def _require_describable(self, about: Description) -> None:
        """Refuse a description that could be written, and not be read again."""
        try:
            content = self._manifest(about, {}).encode()
            Manifest.decode(content, "its manifest")
        except (TypeError, ValueError, RecursionError, DamagedCheckpointError) as error:
            raise CheckpointError(f"{about.name} cannot be described like this: {error}") from error
        if len(content) > MAX_MANIFEST_BYTES // 2:  # the other half is for the files
            raise CheckpointError(f"{about.name} cannot be described like this: {len(content)} bytes are too many.")

    def _manifest(self, about: Description, files: dict[str, FileEntry]) -> Manifest:
        return Manifest(
            run_id=about.run_id,
            name=about.name,
            step=about.step,
            clock=about.clock,
            clocks=dict(about.clocks),
            attempt=about.attempt,
            parent=self.parent,
            kind=about.kind,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            exactness=about.exactness,
            inexact_because=about.inexact_because,
            environment=current_environment(),
            config_sha256=self.config_sha256,
            metrics=dict(about.metrics),
            metadata=dict(about.metadata),
            files=files,
        )
