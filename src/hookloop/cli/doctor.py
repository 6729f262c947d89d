"""``hookloop doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hookloop.cli.exit_codes import EXIT_DONE, EXIT_FAILED

NEEDED_FREE_BYTES = 1 << 30
_EXTRA = re.compile(r"""extra\s*==\s*['"](?P<extra>[\w-]+)['"]""")
_PACKAGE = re.compile(r"[A-Za-z0-9._-]+")
_NOT_FOR_USERS = ("dev", "bench", "all")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    what: str
    is_good: bool
    found: str
    advice: str = ""
    is_optional: bool = False


def doctor(*, json: bool = False) -> int:
    """Check Python, torch, the extras and the place for runs; say what to install.

    Args:
        json: Print JSON instead of a table.
    """
    findings = [*_machine(), *_packages(), *_places()]
    if json:
        _print_json(findings)
    else:
        _print_table(findings)
    return EXIT_DONE if all(finding.is_good or finding.is_optional for finding in findings) else EXIT_FAILED


def _machine() -> list[Finding]:
    is_new = sys.version_info >= (3, 11)
    python = Finding(
        "python", is_new, platform.python_version(), "" if is_new else "hookloop needs Python 3.11 or newer"
    )
    return [python, Finding("cpu", True, f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}")]


def _packages() -> list[Finding]:
    core, extras = _requirements()
    found = [_package(name, f"pip install '{name}'") for name in core]
    for extra, names in sorted(extras.items()):
        missing = [name for name in names if _version(name) is None]
        have = ", ".join(f"{name} {_version(name)}" for name in names if name not in missing)
        advice = f"pip install 'hookloop[{extra}]'" if missing else ""
        found.append(Finding(f"extra {extra}", not missing, have or "not installed", advice, is_optional=True))
    return found


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Read our own requirements: the packages everybody needs, and those of each extra."""
    core: list[str] = []
    extras: dict[str, list[str]] = {}
    for requirement in requires("hookloop") or ():
        package = _PACKAGE.match(requirement)
        extra = _EXTRA.search(requirement)
        if package is None or package[0] == "hookloop":
            continue
        if extra is None:
            core.append(package[0])
        elif extra["extra"] not in _NOT_FOR_USERS:
            extras.setdefault(extra["extra"], []).append(package[0])
    return core, extras


def _package(name: str, advice: str) -> Finding:
    found = _version(name)
    is_importable = name != "torch" or find_spec("torch") is not None
    is_good = found is not None and is_importable
    return Finding(name, is_good, found or "not installed", "" if is_good else advice)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _places() -> list[Finding]:
    here = Path.cwd()
    try:
        with tempfile.TemporaryFile(dir=here):
            can_write = True
    except OSError:
        can_write = False
    free_bytes = shutil.disk_usage(here).free
    write_advice = "" if can_write else "run from a folder you may write to"
    disk_advice = "" if free_bytes >= NEEDED_FREE_BYTES else "checkpoints need room: free at least 1 GiB"
    return [
        Finding("runs folder", can_write, "writable" if can_write else "not writable", write_advice),
        Finding("disk", free_bytes >= NEEDED_FREE_BYTES, f"{free_bytes / (1 << 30):.0f} GiB free", disk_advice),
    ]


def _print_json(findings: list[Finding]) -> None:
    Console().print_json(json.dumps([asdict(finding) for finding in findings]))


def _print_table(findings: list[Finding]) -> None:
    table = Table("", "what", "found", box=None, pad_edge=False)
    table.add_column("to do", no_wrap=True)  # commands are copied whole
    for finding in findings:
        mark = "ok" if finding.is_good else ("-" if finding.is_optional else "!!")
        # As texts: rich would take the brackets of 'hookloop[wandb]' for markup.
        table.add_row(mark, finding.what, Text(finding.found), Text(finding.advice))
    Console().print(table)
