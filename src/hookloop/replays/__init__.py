"""Replays: recorded episodes in a compact file that anybody can read, and nobody is harmed by reading."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "Replay": "hookloop.replays.files",
    "ReplayFolder": "hookloop.replays.folder",
    "read_about": "hookloop.replays.files",
    "read_replay": "hookloop.replays.files",
    "replay_page": "hookloop.replays.page",
    "write_replay": "hookloop.replays.files",
}

__all__ = ["Replay", "ReplayFolder", "read_about", "read_replay", "replay_page", "write_replay"]

if TYPE_CHECKING:
    from hookloop.replays.files import Replay, read_about, read_replay, write_replay
    from hookloop.replays.folder import ReplayFolder
    from hookloop.replays.page import replay_page


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
