"""The command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def hookloop(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return python("-m", "hookloop", *arguments, **environment)


def python(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter of this test to its end."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", **environment},
        check=False,
    )
