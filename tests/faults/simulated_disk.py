"""Power loss without pulling a plug: what may be left of a sequence of disk calls when the machine dies.

Killing a process proves nothing about flushes, for what was written stays in the memory of the machine. Here a disk
records what it is told to do, and a model says which states the real disk may be in after a crash at any instant:

* a file's content is certain once the file was flushed; before, it may be empty, cut short, full, or zeros in part;
* a name that was made, changed or removed is certain once the folder that holds it was flushed; before, any subset of
  the changes to a folder may be there, since POSIX promises no order between them;
* a folder's own name is held by its parent, and goes with it.

A rename within a folder is one change; a rename from folder to folder is two, for two folders must be flushed.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from hookloop.storage.disk import LocalDisk

Kind = Literal["present", "make_folder", "write", "flush", "flush_folder", "rename", "remove"]
FLUSHES: tuple[Kind, ...] = ("flush", "flush_folder")


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a disk; its paths are relative to the recorded folder."""

    kind: Kind
    path: PurePosixPath
    new_path: PurePosixPath | None = None
    content: bytes | None = None  # of a file; None for a folder


class RecordingDisk(LocalDisk):
    """The real disk, recording every call below one folder. What is in the folder at the start counts as durable."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ops: list[Operation] = []
        for path in sorted(root.rglob("*")):
            self._record("present", path, content=path.read_bytes() if path.is_file() else None)

    @property
    def flush_calls(self) -> list[Operation]:
        """The calls of flush and flush_folder, in order: those a ForgetfulDisk counts."""
        return [operation for operation in self.ops if operation.kind in FLUSHES]

    def make_folder(self, folder: Path) -> None:
        super().make_folder(folder)
        self._record("make_folder", folder)

    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        try:
            super().write(path, chunks)
        except FileExistsError:
            raise
        except BaseException:
            if path.exists():  # what a write that failed has left
                self._record("write", path, content=path.read_bytes())
            raise
        self._record("write", path, content=path.read_bytes())

    def flush(self, path: Path) -> None:
        os.stat(path)  # a flush of nothing is an error here too; no more is needed, for the model is the disk
        self._record("flush", path)

    def flush_folder(self, folder: Path) -> None:
        os.listdir(folder)
        self._record("flush_folder", folder)

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self._record("rename", old, new_path=new)

    def remove(self, path: Path) -> None:
        was_there = os.path.lexists(path)
        super().remove(path)
        if was_there:
            self._record("remove", path)

    def _record(self, kind: Kind, path: Path, *, new_path: Path | None = None, content: bytes | None = None) -> None:
        if path.is_relative_to(self.root):
            new = None if new_path is None else self._relative(new_path)
            self.ops.append(Operation(kind, self._relative(path), new, content))

    def _relative(self, path: Path) -> PurePosixPath:
        return PurePosixPath(path.relative_to(self.root))


class ForgetfulDisk(RecordingDisk):
    """A mutant: it skips one flush, the ``forgotten``-th call (from 0) of flush and flush_folder below its folder."""

    def __init__(self, root: Path, forgotten: int) -> None:
        super().__init__(root)
        self._forgotten = forgotten
        self._calls = 0

    def _record(self, kind: Kind, path: Path, *, new_path: Path | None = None, content: bytes | None = None) -> None:
        if kind in FLUSHES and path.is_relative_to(self.root):
            self._calls += 1
            if self._calls - 1 == self._forgotten:
                return
        super()._record(kind, path, new_path=new_path, content=content)


@dataclass(frozen=True, slots=True)
class CrashState:
    """What is on the disk after a crash: its files and folders by their paths, relative to the recorded folder."""

    completed: int
    """How many of the operations had returned. What was acknowledged by then must be there."""
    how: str
    """Which of the changes in flight the disk has kept."""
    tree: dict[str, bytes | None]
    """The content of every file, and None for every folder; parents come before what is in them."""

    def build(self, into: Path) -> Path:
        """Make the state real in a new folder, and return that."""
        into.mkdir(parents=True)
        for name, content in self.tree.items():
            if content is None:
                (into / name).mkdir()
            else:
                (into / name).write_bytes(content)
        return into


def crash_states(ops: Sequence[Operation], *, seed: int = 0, samples: int = 12) -> Iterator[CrashState]:
    """Yield every state that is tried, for a crash at each instant; no state twice for one instant.

    Args:
        seed: Decides the random choices; the same seed gives the same states.
        samples: How many random subsets and contents are tried at each instant, beside the systematic ones.
    """
    model = _Model()
    for completed, operation in enumerate(ops):
        if operation.kind != "present":
            yield from _states_now(model, completed, random.Random(f"{seed} {completed}"), samples)
        for part, step in enumerate(model.steps(operation)):
            if part:
                yield from _states_now(model, completed, random.Random(f"{seed} {completed} {part}"), samples)
            model.apply(step)
    yield from _states_now(model, len(ops), random.Random(f"{seed} {len(ops)}"), samples)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder for building states in: in memory if possible, where making and removing thousands is quick."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def certain_tree(ops: Sequence[Operation]) -> dict[str, bytes | None]:
    """Return what is there after the operations if there is no crash."""
    model = _Model()
    for operation in ops:
        for step in model.steps(operation):
            model.apply(step)
    return model.tree(set(range(model.num_changes)), lambda file: file.content)


def useful_flushes(ops: Sequence[Operation]) -> list[int]:
    """Return which flush calls, counted from 0, had something to flush; the others cannot be missed."""
    model = _Model()
    useful: list[int] = []
    calls = 0
    for operation in ops:
        if operation.kind in FLUSHES:
            if model.is_dirty(operation):
                useful.append(calls)
            calls += 1
        for step in model.steps(operation):
            model.apply(step)
    return useful


# The model


@dataclass(eq=False, slots=True)
class _File:
    content: bytes
    is_flushed: bool = False


@dataclass(frozen=True, slots=True)
class _Change:
    """A change to the names in one folder, kept as a whole or lost as a whole."""

    number: int
    names: dict[str, _File | _Folder | None]


@dataclass(eq=False, slots=True)
class _Folder:
    now: dict[str, _File | _Folder] = field(default_factory=dict)
    durable: dict[str, _File | _Folder] = field(default_factory=dict)
    pending: list[_Change] = field(default_factory=list)


def _change_names(names: dict[str, _File | _Folder], changes: dict[str, _File | _Folder | None]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class _Model:
    """The folders and files after some operations: as programs see them, and as far as they are certain."""

    def __init__(self) -> None:
        self.root = _Folder()
        self.num_changes = 0

    def steps(self, operation: Operation) -> list[Operation]:
        """Return the parts of an operation between which the machine may die: a folder goes name by name."""
        if operation.kind != "remove":
            return [operation]
        node = self._node(operation.path)
        inner = [Operation("remove", operation.path / name) for name in node.now] if isinstance(node, _Folder) else []
        return [step for child in inner for step in self.steps(child)] + [operation]

    def apply(self, step: Operation) -> None:
        """Change the model as one step changes the disk."""
        path = step.path
        match step.kind:
            case "present" | "make_folder" | "write":
                node = _Folder() if step.content is None else _File(step.content)
                self._change(path.parent, {path.name: node})
                if step.kind == "present":
                    self._make_durable(path.parent)
                    self._make_durable(path)
            case "flush" | "flush_folder":
                self._make_durable(path)
            case "remove":
                self._change(path.parent, {path.name: None})
            case "rename":
                new = step.new_path
                assert new is not None
                node = self._node(path)
                if new.parent == path.parent:
                    self._change(path.parent, {path.name: None, new.name: node})
                else:
                    self._change(new.parent, {new.name: node})
                    self._change(path.parent, {path.name: None})

    def is_dirty(self, flush: Operation) -> bool:
        """Return whether a flush makes anything certain that was not."""
        node = self._node(flush.path)
        return bool(node.pending) if isinstance(node, _Folder) else not node.is_flushed

    def in_flight(self) -> list[int]:
        """Return the numbers of the changes that are not certain, in the order in which they were made."""
        found: dict[int, _Folder] = {}
        unseen = [self.root]
        while unseen:  # a folder whose removal is certain is out of reach, and so are the changes in it
            folder = unseen.pop()
            if id(folder) not in found:
                found[id(folder)] = folder
                nodes = [*folder.durable.values(), *(n for c in folder.pending for n in c.names.values())]
                unseen.extend(node for node in nodes if isinstance(node, _Folder))
        return sorted(change.number for folder in found.values() for change in folder.pending)

    def tree(self, kept: set[int], content_of: Callable[[_File], bytes]) -> dict[str, bytes | None]:
        """Return what is reachable from the root if only the changes of these numbers are kept."""
        found: dict[str, bytes | None] = {}

        def walk(folder: _Folder, prefix: str) -> None:
            names = dict(folder.durable)
            for change in folder.pending:
                if change.number in kept:
                    _change_names(names, change.names)
            for name, node in sorted(names.items()):
                if isinstance(node, _File):
                    found[prefix + name] = node.content if node.is_flushed else content_of(node)
                else:
                    found[prefix + name] = None
                    walk(node, f"{prefix}{name}/")

        walk(self.root, "")
        return found

    def _node(self, path: PurePosixPath) -> _File | _Folder:
        node: _File | _Folder = self.root
        for name in path.parts:
            assert isinstance(node, _Folder)
            node = node.now[name]
        return node

    def _change(self, folder_path: PurePosixPath, names: dict[str, _File | _Folder | None]) -> None:
        folder = self._node(folder_path)
        assert isinstance(folder, _Folder)
        _change_names(folder.now, names)
        folder.pending.append(_Change(self.num_changes, names))
        self.num_changes += 1

    def _make_durable(self, path: PurePosixPath) -> None:
        node = self._node(path)
        if isinstance(node, _File):
            node.is_flushed = True
            return
        node.durable = dict(node.now)
        node.pending.clear()


# The states


def _states_now(model: _Model, completed: int, rng: random.Random, samples: int) -> Iterator[CrashState]:
    seen: set[frozenset[tuple[str, bytes | None]]] = set()
    for how, kept, damage in _choices(model.in_flight(), rng, samples):
        tree = model.tree(kept, _contents(damage, rng))
        key = frozenset(tree.items())
        if key not in seen:
            seen.add(key)
            yield CrashState(completed, f"{how}; unflushed files {damage}", tree)


def _choices(in_flight: list[int], rng: random.Random, samples: int) -> Iterator[tuple[str, set[int], str]]:
    """Yield which changes to names are kept, in words and by number, and what has become of unflushed files."""
    everything = set(in_flight)
    for damage in (*_DAMAGES, "mixed"):
        yield "no change kept", set(), damage
        yield "all changes kept", everything, damage
    for count in range(1, len(in_flight)):
        yield f"the first {count} changes kept", set(in_flight[:count]), "full"
        yield f"the first {count} changes kept", set(in_flight[:count]), "mixed"
    for number in in_flight:
        yield f"change {number} alone kept", {number}, "full"
        yield f"change {number} alone lost", everything - {number}, "full"
    for _ in range(samples):
        kept = {number for number in in_flight if rng.random() < 0.5}
        yield f"changes {sorted(kept)} kept", kept, "mixed"


def _contents(damage: str, rng: random.Random) -> Callable[[_File], bytes]:
    """Return what has become of each file that was not flushed; of a file with two names, the same for both."""
    chosen: dict[int, bytes] = {}

    def content_of(file: _File) -> bytes:
        if id(file) not in chosen:
            kind = rng.choice(tuple(_DAMAGES)) if damage == "mixed" else damage
            chosen[id(file)] = _DAMAGES[kind](file.content, rng)
        return chosen[id(file)]

    return content_of


def _zeroed_tail(content: bytes, rng: random.Random) -> bytes:
    """Return a file whose length reached the disk before its last blocks did."""
    whole = rng.randint(0, len(content))
    return content[:whole] + bytes(len(content) - whole)


_DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "empty": lambda content, rng: b"",
    "torn": lambda content, rng: content[: rng.randint(0, len(content))],
    "zeroed": lambda content, rng: bytes(len(content)),
    "zeroed in part": _zeroed_tail,
    "full": lambda content, rng: content,
}
