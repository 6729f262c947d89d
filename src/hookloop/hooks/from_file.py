"""Hooks from a configuration file."""

from __future__ import annotations

from pathlib import Path

from hookloop.core import HookManager
from hookloop.errors import ConfigError, did_you_mean


def load_hooks(path: str | Path, hooks: HookManager | None = None) -> HookManager:
    """Add the hooks that the list ``hooks`` of a YAML, TOML or JSON file names; to a new set by default."""
    # Here and not above: every command imports the hooks, few read a file, and YAML takes a while to import.
    from hookloop.config.files import read_config

    read = read_config(path)
    for key in read:
        if key != "hooks":
            raise ConfigError(
                f"{path} has the key {key!r}, which means nothing there.{did_you_mean(str(key), ['hooks'])}"
            )
    hooks = HookManager() if hooks is None else hooks
    hooks.add_config(read.get("hooks", []))
    return hooks
