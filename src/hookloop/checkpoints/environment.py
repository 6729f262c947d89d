"""What the bits of a run depend on besides its state: versions, threads, the machine."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

Plain = Any

_PACKAGES = ("hookloop", "torch", "numpy", "gymnasium", "envpool")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it was when the checkpoint was written."""

    name: str
    before: Plain
    now: Plain

    def __str__(self) -> str:
        return f"{self.name}: {self.before} before, {self.now} now"


def current_environment() -> dict[str, Plain]:
    """Return what the bits of this process depend on."""
    found: dict[str, Plain] = {"python": platform.python_version(), "machine": platform.machine()}
    found.update({package: _version(package) for package in _PACKAGES if package in sys.modules})
    torch = sys.modules.get("torch")  # whoever trains has imported it; whoever reads need not wait for it
    if torch is not None:
        found["threads"] = torch.get_num_threads()
        found["cpu_capability"] = torch.backends.cpu.get_cpu_capability()
        found["deterministic"] = torch.are_deterministic_algorithms_enabled()
    return found


def differences(before: Mapping[str, Plain], now: Mapping[str, Plain]) -> list[Difference]:
    """Return what has changed; with any of these the numbers may round differently."""
    return [
        Difference(name, before.get(name), now.get(name))
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


@functools.cache  # it reads a file, for which a process may have no descriptor left when it saves
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
