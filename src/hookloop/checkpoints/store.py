"""The checkpoints of one run: a folder of folders, whose names are all the index there is."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookloop.checkpoints.folder import (
    TEMPORARY,
    Chunks,
    Content,
    clear_away,
    read_files,
    read_manifest,
    read_small,
    write_folder,
)
from hookloop.checkpoints.manifest import NAME, FileEntry, Manifest
from hookloop.checkpoints.strict_json import parse_json
from hookloop.errors import CheckpointError, DamagedCheckpointError, NoCheckpointError
from hookloop.storage.atomic import write_json
from hookloop.storage.disk import Disk, LocalDisk, make_folders

if TYPE_CHECKING:
    from hookloop.checkpoints.tensor_file import TensorFile

Plain = Any

log = logging.getLogger("hookloop.checkpoints")

DEFAULT_MAX_BYTES = 1 << 40
_TRASH = ".trash-"
_DAMAGED = ".bad-"
_SUPERSEDED = ".superseded-"
_PINS = "pins.json"
STATE_FILE = "state.json"
TENSOR_FILE = re.compile(r"([a-z]+)(?:-\d{5})?\.safetensors", re.ASCII)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that is durable: what it is and where."""

    manifest: Manifest
    path: Path

    @property
    def name(self) -> str:
        """Its name in the run."""
        return self.manifest.name

    @property
    def id(self) -> str:
        """A name that no other content can ever have."""
        return f"{self.manifest.run_id}/{self.manifest.name}@{self.manifest.sha256[:16]}"

    @property
    def uri(self) -> str:
        """Where it is on this machine."""
        return self.path.absolute().as_uri()

    @property
    def step(self) -> int:
        """What the run's progress read."""
        return self.manifest.step


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A checkpoint whose manifest cannot be believed."""

    name: str
    fault: str


class CheckpointStore:
    """Reads and writes the checkpoints in a folder; only the holder of the run's lock may write.

    Args:
        folder: Where the checkpoints are.
        disk: What carries out the writes.
        max_bytes: Larger checkpoints are not read.
    """

    def __init__(self, folder: Path, *, disk: Disk | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._disk: Disk = LocalDisk() if disk is None else disk

    # Reading

    def has(self, name: str) -> bool:
        """Return whether a name is taken."""
        return os.path.lexists(self.folder / name)

    def names(self) -> list[str]:
        """Return the names of all committed checkpoints, oldest first."""
        return sorted((name for name in self._disk.names(self.folder) if NAME.fullmatch(name)), key=_order)

    def look(self, name: str) -> Checkpoint:
        """Return a checkpoint by what its manifest says, its other files unread."""
        if (self.folder / name).is_symlink():
            raise DamagedCheckpointError(f"{self.folder / name} is a link, and leads out of the run.")
        manifest = read_manifest(self.folder / name)
        if manifest.name != name:
            raise DamagedCheckpointError(f"{self.folder / name} holds the checkpoint {manifest.name}, not its own.")
        return Checkpoint(manifest, self.folder / name)

    def look_at_all(self) -> list[Checkpoint | Unreadable]:
        """Return all checkpoints, oldest first, those that cannot be read with the reason."""
        found: list[Checkpoint | Unreadable] = []
        for name in self.names():
            try:
                found.append(self.look(name))
            except DamagedCheckpointError as error:
                found.append(Unreadable(name, str(error)))
        return found

    def sound(self) -> list[Checkpoint]:
        """Return the checkpoints whose manifests are sound, oldest first."""
        return [each for each in self.look_at_all() if isinstance(each, Checkpoint)]

    def verify(self, name: str) -> Checkpoint:
        """Check every byte of a checkpoint."""
        checkpoint = self.look(name)
        read_files(checkpoint.path, checkpoint.manifest, max_bytes=self.max_bytes)
        return checkpoint

    def read(self, name: str) -> tuple[Checkpoint, Plain]:
        """Return a checkpoint and the state in it."""
        checkpoint = self.look(name)
        return checkpoint, read_state(checkpoint, max_bytes=self.max_bytes)

    def latest(self) -> Checkpoint:
        """Return the newest checkpoint of which every byte is sound; nothing is moved."""
        for name in reversed(self.names()):
            try:
                return self.verify(name)
            except DamagedCheckpointError as error:
                log.warning("%s is damaged and passed over: %s", name, error)
        raise NoCheckpointError(f"There is no sound checkpoint in {self.folder}.")

    def read_latest(self, *, sets_aside: bool = True) -> tuple[Checkpoint, Plain] | None:
        """Return the newest sound checkpoint and its state, None if there never was one; damaged ones are set aside.

        If there are checkpoints and none is sound or all were set aside, this raises: a run never starts over silently.
        """
        names = self.names()
        for name in reversed(names):
            try:
                return self.read(name)
            except DamagedCheckpointError as error:
                log.warning("%s is damaged and %s: %s", name, "set aside" if sets_aside else "passed over", error)
                if sets_aside:
                    self._put_away([name], _DAMAGED)
        self._refuse_to_start_over()
        return None

    def _refuse_to_start_over(self) -> None:
        names = self._disk.names(self.folder)
        if any(name.startswith(_DAMAGED) or NAME.fullmatch(name) for name in names):
            raise DamagedCheckpointError(
                f"Every checkpoint in {self.folder} is damaged; a resume keeps them there under names with "
                f"{_DAMAGED!r}. Bring one back from a copy, or begin a new run."
            )
        if any(name.startswith(_SUPERSEDED) for name in names):
            raise NoCheckpointError(
                f"The run went on from a checkpoint elsewhere and has saved none since; those in {self.folder} were "
                f"set aside under names with {_SUPERSEDED!r}. Go on from that one again, or rename one of these."
            )

    # Writing

    def prepare(self) -> None:
        """Make the folder, and clear away what a killed process left half done."""
        make_folders(self._disk, self.folder)
        clear_away(self._disk, self.folder, TEMPORARY, _TRASH, f".{_PINS}.")

    def write(
        self, name: str, files: Mapping[str, Chunks], describe: Callable[[dict[str, FileEntry]], Manifest]
    ) -> Checkpoint:
        """Write a checkpoint; it is durable once this returns."""
        if not NAME.fullmatch(name):
            raise CheckpointError(
                f"A checkpoint is named like step-000000012288 or step-000000012288-final, got {name!r}."
            )
        return Checkpoint(write_folder(self._disk, self.folder, name, files, describe), self.folder / name)

    def delete(self, name: str) -> None:
        """Remove a checkpoint: its name first, so that a kill half-way leaves no half checkpoint behind."""
        if name not in self.names():
            raise NoCheckpointError(f"There is no checkpoint {name!r} in {self.folder} to delete.")
        trash = self.folder / f"{_TRASH}{name}"
        self._disk.remove(trash)
        self._disk.rename(self.folder / name, trash)
        self._disk.flush_folder(self.folder)
        self._disk.remove(trash)

    def supersede_after(self, name: str | None) -> list[str]:
        """Set aside what is newer than the checkpoint a run goes on from: it belongs to a future that is given up."""
        newer = [each for each in self.names() if name is None or _order(each) > _order(name)]
        self._put_away(newer, _SUPERSEDED)
        return newer

    # Pins

    def pins(self) -> list[str]:
        """Return the names of the checkpoints that are kept whatever the rules say."""
        file = self.folder / _PINS
        if not os.path.lexists(file):
            return []
        try:
            read = parse_json(read_small(file), str(file))
        except DamagedCheckpointError as error:
            raise CheckpointError(f"{error} Mend or delete it: it says which checkpoints are pinned.") from error
        if not isinstance(read, list) or not all(isinstance(name, str) for name in read):
            raise CheckpointError(f"{file} should be a list of names of checkpoints; mend or delete it.")
        return sorted(read)

    def pin(self, name: str, pinned: bool = True) -> None:
        """Keep a checkpoint whatever the rules say, or no longer."""
        if name not in self.names():
            raise NoCheckpointError(f"There is no checkpoint {name!r} in {self.folder} to pin.")
        others = [each for each in self.pins() if each != name]
        write_json(self.folder / _PINS, sorted([*others, name] if pinned else others))

    def _put_away(self, names: Sequence[str], prefix: str) -> None:
        taken = set(self._disk.names(self.folder))
        for name in names:
            away = next(f"{prefix}{name}-{n}" for n in range(len(taken) + 1) if f"{prefix}{name}-{n}" not in taken)
            self._disk.rename(self.folder / name, self.folder / away)
        if names:
            self._disk.flush_folder(self.folder)


def read_state(checkpoint: Checkpoint, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Plain:
    """Return the state in a checkpoint, after a look at every byte of it."""
    from hookloop.checkpoints.tree import put_together  # with numpy, which commands that only look do not need

    contents = read_files(checkpoint.path, checkpoint.manifest, max_bytes=max_bytes)
    if STATE_FILE not in contents:
        raise DamagedCheckpointError(f"{checkpoint.path} has no {STATE_FILE}.")
    tensors = _open_tensors(checkpoint, contents)

    def find(kind: str, part: str, name: str) -> Any:
        if (part, name) not in tensors:
            raise DamagedCheckpointError(f"{checkpoint.path} does not hold the tensor {name!r} of its {part!r}.")
        return getattr(tensors[part, name], kind)(name)

    return put_together(parse_json(bytes(contents[STATE_FILE]), str(checkpoint.path / STATE_FILE)), find)


def _open_tensors(checkpoint: Checkpoint, contents: Mapping[str, Content]) -> dict[tuple[str, str], TensorFile]:
    """Return the file of every tensor, by part and name."""
    from hookloop.checkpoints.tensor_file import TensorFile

    found: dict[tuple[str, str], TensorFile] = {}
    for file, content in contents.items():
        match = TENSOR_FILE.fullmatch(file)
        if match is not None:
            opened = TensorFile(content, str(checkpoint.path / file))
            found.update({(match[1], name): opened for name in opened.places})
    return found


def _order(name: str) -> tuple[int, bool]:
    match = NAME.fullmatch(name)
    assert match is not None
    return int(match[1]), match[2] is not None
