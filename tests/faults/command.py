"""The command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hookloop.cli.main import run
from tests.faults.processes import fork


def hookloop(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a process that is forked from this one and need not import everything again."""
    words = [str(word) for word in arguments]
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")

        def work() -> int:
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
            os.environ.update({"COLUMNS": "200", **environment})
            return run(words)

        code = fork(work, output, cwd=cwd).code()
        return subprocess.CompletedProcess(words, code, output.read_text(), errors.read_text())


def python(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter of this test to its end."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", **environment},
        check=False,
    )
