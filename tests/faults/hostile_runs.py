"""Runs that somebody has tampered with, hashes and all: what each holds, and which commands must refuse it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookloop.runs.folder import RunConfig, RunFolder
from tests.hostile_files import MEANINGLESS, NO_STRICT_JSON, SHA, TENSOR_FILES, signed
from tests.saving import saved

NAME = "step-000000000001"
EVERYTHING = ("read", "restore", "verify", "export")
LOADING = ("read", "restore", "export")
STATE_ALONE = ("read", "restore")
LOOKING = ("list", "export")
VAST_BYTES = 1 << 31  # more than the process that reads it may have; it takes no room on the disk
PICKLE = b"cos\nsystem\n(S'touch HOSTILE-WAS-HERE'\ntR."


@dataclass(frozen=True, slots=True)
class Case:
    """One way to tamper with a run, and what must refuse the result; the rest must merely not fall over."""

    tamper: Callable[[Path], object]
    refused_by: tuple[str, ...]


def sound_run(folder: Path) -> Path:
    """Write a small run that nobody has tampered with."""
    saved(folder / "checkpoints", 1)
    RunFolder(folder).write_config(
        RunConfig("cartpole", 0, 1, {"checkpoints": {"metric": "return/mean"}}, run_id="run")
    )
    return folder


def checkpoint_in(run: Path) -> Path:
    return run / "checkpoints" / NAME


def reseal(run: Path, **changes: Any) -> None:
    """Write a manifest whose hashes fit what is in the folder now."""
    folder = checkpoint_in(run)
    body = json.loads((folder / "MANIFEST.json").read_bytes())
    del body["sha256"]
    body["files"] = {
        path.name: {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in sorted(folder.iterdir())
        if path.name != "MANIFEST.json"
    }
    (folder / "MANIFEST.json").write_bytes(signed({**body, **changes}))


def replacing(name: str, content: bytes | bytearray) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        (checkpoint_in(run) / name).write_bytes(content)
        if name != "MANIFEST.json":
            reseal(run)

    return tamper


def changing(**changes: Any) -> Callable[[Path], None]:
    return lambda run: reseal(run, **changes)


def config(content: bytes | None = None, **changes: Any) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        read = json.loads((run / "config.json").read_bytes())
        (run / "config.json").write_bytes(content or json.dumps({**read, **changes}).encode())

    return tamper


STATES: dict[str, bytes] = {
    "a place holder that leads nowhere": b'{"a": {"$torch": "model:nothing"}}',
    "a place holder of a part that is not there": b'{"a": {"$torch": "weights:a"}}',
    "a place holder that leads out": b'{"a": {"$torch": "../../../etc/passwd:a"}}',
    "a place holder with an absolute path": b'{"a": {"$numpy": "/etc/passwd:a"}}',
    "a place holder with a NUL": b'{"a": {"$torch": "model\\u0000:weight"}}',
    "a place holder that is a number": b'{"a": {"$torch": 3}}',
    "a place holder without a part": b'{"a": {"$torch": "weight"}}',
    "a place holder nobody knows": b'{"a": {"$pickle": "gASVCg=="}}',
    "a place holder with company": b'{"a": {"$torch": "model:weight", "$numpy": "model:weight"}}',
    "a deep state": b'{"a":' * 200 + b"1" + b"}" * 200,
    "a state of a hundred thousand brackets": b"[" * 100_000,
    "no number": b'{"a": NaN}',
    "an infinite number": b'{"a": 1e999}',
    "a number of many digits": b'{"a": ' + b"7" * 10_000 + b"}",
    "a name twice": b'{"a": 1, "a": 2}',
    "a pickle": PICKLE,
    "no UTF-8": b'{"a": "\xff"}',
    "two states": b"{}{}",
    "an empty file": b"",
}  # fmt: skip


def linked_file(run: Path) -> None:
    outside = run.parent / "outside.json"
    shutil.move(checkpoint_in(run) / "state.json", outside)
    (checkpoint_in(run) / "state.json").symlink_to(outside)


def linked_folder(run: Path) -> None:
    shutil.move(checkpoint_in(run), run.parent / "outside")
    checkpoint_in(run).symlink_to(run.parent / "outside")


def pipe(run: Path) -> None:
    (checkpoint_in(run) / "model.safetensors").unlink()
    os.mkfifo(checkpoint_in(run) / "model.safetensors")


def pipe_for_a_manifest(run: Path) -> None:
    (checkpoint_in(run) / "MANIFEST.json").unlink()
    os.mkfifo(checkpoint_in(run) / "MANIFEST.json")


def look_alike(run: Path) -> None:
    """The letter e of the name is not the letter e."""
    (checkpoint_in(run) / "state.json").rename(checkpoint_in(run) / "stat\u0435.json")
    reseal(run)


def odd_name(run: Path) -> None:
    (checkpoint_in(run) / "a\nb\x1b[2J").write_bytes(b"")


def without_a_state(run: Path) -> None:
    (checkpoint_in(run) / "state.json").unlink()
    reseal(run)


def without_weights(run: Path) -> None:
    (checkpoint_in(run) / "model.safetensors").unlink()
    reseal(run)


def endless_manifest(run: Path) -> None:
    with (checkpoint_in(run) / "MANIFEST.json").open("r+b") as file:
        file.truncate(1 << 36)  # it takes no room on the disk


def vast_file(run: Path) -> None:
    """The size is honest, and the memory is not there."""
    with (checkpoint_in(run) / "model.safetensors").open("r+b") as file:
        file.truncate(VAST_BYTES)
    body = json.loads((checkpoint_in(run) / "MANIFEST.json").read_bytes())
    files = {**body["files"], "model.safetensors": {"bytes": VAST_BYTES, "sha256": SHA}}
    del body["sha256"]
    (checkpoint_in(run) / "MANIFEST.json").write_bytes(signed({**body, "files": files}))


def claiming(size: int) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        body = json.loads((checkpoint_in(run) / "MANIFEST.json").read_bytes())
        del body["sha256"]
        body["files"]["model.safetensors"]["bytes"] = size
        (checkpoint_in(run) / "MANIFEST.json").write_bytes(signed(body))

    return tamper


CASES: dict[str, Case] = {
    **{f"manifest: {ascii(c)[:70]}": Case(changing(**c), EVERYTHING) for c in MEANINGLESS},
    **{f"manifest: {c[:20]!a}": Case(replacing("MANIFEST.json", c), EVERYTHING) for c in NO_STRICT_JSON},
    **{f"weights: {n}": Case(replacing("model.safetensors", bytes(c)), LOADING) for n, c in TENSOR_FILES.items()},
    **{f"state: {name}": Case(replacing("state.json", text), STATE_ALONE) for name, text in STATES.items()},
    "config: a pickle": Case(config(PICKLE), LOOKING),
    "config: a deep text": Case(config(b"[" * 100_000), LOOKING),
    "config: no mapping": Case(config(b"[]"), LOOKING),
    "config: settings that are none": Case(config(settings=[]), LOOKING),
    "config: rules that are none": Case(config(settings={"checkpoints": 3}), LOOKING),
    "config: a metric that is none": Case(config(settings={"checkpoints": {"metric": ["a"]}}), LOOKING),
    "config: a mode that is none": Case(config(settings={"checkpoints": {"mode": {}}}), LOOKING),
    "manifest: a pickle": Case(replacing("MANIFEST.json", PICKLE), EVERYTHING),
    "manifest: deep metadata": Case(changing(metadata=json.loads('{"a":' * 90 + "1" + "}" * 90)), EVERYTHING),
    "manifest: an endless file": Case(endless_manifest, EVERYTHING),
    "weights: a pickle": Case(replacing("model.safetensors", PICKLE), LOADING),
    "other tensors: a pickle": Case(replacing("state.safetensors", PICKLE), STATE_ALONE),
    "files: a link out of the run": Case(linked_file, EVERYTHING),
    "files: a folder that is a link": Case(linked_folder, ("read", "restore", "verify")),
    "files: a pipe": Case(pipe, EVERYTHING),
    "files: a pipe for a manifest": Case(pipe_for_a_manifest, EVERYTHING),
    "files: a name that looks alike": Case(look_alike, EVERYTHING),
    "files: a name a terminal obeys": Case(odd_name, EVERYTHING),
    "files: no state": Case(without_a_state, STATE_ALONE),
    "files: no weights": Case(without_weights, LOADING),
    "files: a size beyond all disks": Case(claiming(1 << 62), EVERYTHING),
    "files: a size that is not its own": Case(claiming(1 << 30), EVERYTHING),
    "files: a size beyond the memory": Case(vast_file, LOADING),
}
