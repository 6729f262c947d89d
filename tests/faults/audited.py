"""Runs in a process of its own: reads runs under an audit hook, and prints what refused them and what was tried.

Usage: python -m tests.faults.audited FOLDER, where FOLDER holds a folder with a run for each case. The one that comes
first is read before the hook listens, so that everything is imported by then.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from hookloop.checkpoints import CheckpointStore
from hookloop.cli.checkpoints import checkpoints
from hookloop.cli.export import export
from hookloop.errors import HookloopError
from tests.saving import manager_in

NAME = "step-000000000001"
WARM_UP = "a-warm-up"
FORBIDDEN = (
    "exec", "compile", "import", "marshal.loads", "pickle.find_class", "subprocess.Popen", "os.system", "os.exec",
    "os.fork", "os.posix_spawn", "os.spawn", "pty.spawn", "socket.connect", "socket.bind", "ctypes.dlopen",
    "os.chmod", "os.chown", "os.symlink", "os.link", "shutil.copyfile", "shutil.move", "shutil.unpack_archive",
)  # fmt: skip
CHANGING = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.utime")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MEMORY_BYTES = 1 << 30


class Watch:
    """Notes what nobody may do while a run is read, and all that is changed outside of the run."""

    def __init__(self) -> None:
        self.run: Path | None = None
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.run is None:
            return
        if event in FORBIDDEN:
            self.seen.append(f"{event} {str(arguments)[:200]}")
        elif (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING) or event in CHANGING:
            self._require_inside(event, arguments[0])

    def _require_inside(self, event: str, path: object) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            parent, name = os.path.split(os.fsdecode(path))
            real = os.path.join(os.path.realpath(parent), name)  # a link may be moved, not what it leads to
            if not f"{real}{os.sep}".startswith(f"{self.run}{os.sep}"):
                self.seen.append(f"{event} {real}")


def outcome(act: Callable[[], object]) -> str:
    """Return the name of the error that refused; ``untyped`` before it if it is none of ours."""
    try:
        act()
    except HookloopError as error:
        return type(error).__name__
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is reported
        return f"untyped {type(error).__name__}: {error}"
    return "accepted"


def command(act: Callable[[], int]) -> str:
    """Return how a command ended; the parser of its words is left out, which evaluates our own annotations."""
    codes: list[int] = []
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        found = outcome(lambda: codes.append(act()))
    if any(not letter.isprintable() for letter in shown.getvalue().replace("\n", "")):
        return f"untyped {shown.getvalue()!r}"  # what a terminal is shown, it obeys
    return f"exit {codes[0]}" if codes and codes[0] else found


def read_in_every_way(run: Path) -> dict[str, str]:
    """Look at a run as a person or a program may."""
    folder = run / "checkpoints"
    return {
        "list": command(lambda: checkpoints(str(run))),
        "verify": command(lambda: checkpoints(str(run), verify=True)),
        "export": command(lambda: export(str(run), to=run / "out.safetensors", checkpoint=str(folder / NAME))),
        "read": outcome(lambda: CheckpointStore(folder).read(NAME)),
        "restore": outcome(lambda: restore(folder)),
    }


def restore(folder: Path) -> None:
    with manager_in(folder) as manager:
        manager.restore()


def limit_memory() -> None:
    """Leave a little more memory than this process has by now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(folder: Path) -> None:
    """Read every run below a folder, and print the outcomes."""
    torch.zeros(1)
    watch = Watch()
    sys.addaudithook(watch)
    limit_memory()
    report: dict[str, Any] = {}
    for place in sorted(folder.iterdir()):
        watch.run = None if place.name == WARM_UP else place / "run"
        ways = read_in_every_way(place / "run")
        watch.run = None
        report[place.name] = {"ways": ways, "seen": list(watch.seen)}
        watch.seen.clear()
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
