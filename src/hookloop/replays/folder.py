"""The replays of a run: a folder of files, whose names sort as they were recorded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookloop.errors import ReplayError, UnknownNameError
from hookloop.replays.files import MOST_FILE_BYTES, Replay, read_about, write_replay
from hookloop.replays.games import KIND

SUFFIX = ".replay"
WORDS = ("best", "worst", "latest")
_ODD = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_MOST_LETTERS = 60


@dataclass(frozen=True, slots=True)
class Kept:
    """A replay in a folder: where it is, what it says of itself, and what is wrong with it if something is."""

    path: Path
    about: dict[str, Any]
    fault: str = ""

    @property
    def name(self) -> str:
        """Its name in the run."""
        return self.path.stem

    @property
    def return_(self) -> float | None:
        """The sum of its rewards; None if it does not say."""
        value = self.about.get("return")
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def is_game(self) -> bool:
        """Whether it is a game, whose return says who won and not how well it was played."""
        return self.about.get("kind") == KIND


class ReplayFolder:
    """Keeps the newest replays of a run.

    Args:
        path: The folder; made when the first one is kept.
        keep: How many; older ones are deleted.
        most_bytes: The largest file that is written.
        among: Keep so many of those that have this word after the number in their names, and leave the others alone.
    """

    def __init__(
        self, path: Path, *, keep: int = 100, most_bytes: int = MOST_FILE_BYTES, among: str | None = None
    ) -> None:
        if keep < 1:
            raise ReplayError(f"A folder of replays keeps at least 1, got keep={keep}.")
        self.path, self._keep, self._most_bytes = path, keep, most_bytes
        self._among = "*" if among is None else f"*-{_plain(among)}-*"

    def save(self, parts: Sequence[object], replay: Replay) -> Path:
        """Write a replay under a name made of these parts, whole numbers first, and return where it is."""
        name = "-".join(f"{part:012d}" if isinstance(part, int) else _plain(str(part)) for part in parts)
        path = self.path / f"{name}{SUFFIX}"
        write_replay(path, replay, most_bytes=self._most_bytes)
        for old in self._files(self._among)[: -self._keep]:
            if old != path:
                old.unlink(missing_ok=True)
        return path

    def all(self) -> list[Kept]:
        """Return all replays, the oldest first; those that cannot be read say why."""
        found: list[Kept] = []
        for file in self._files():
            try:
                found.append(Kept(file, read_about(file)))
            except ReplayError as error:
                found.append(Kept(file, {}, str(error)))
        return found

    @property
    def usual(self) -> str:
        """Which one is looked at if none is named: the best, and of games the latest."""
        return "latest" if any(kept.is_game for kept in self.all()) else "best"

    def find(self, selector: str) -> Path:
        """Return a replay by ``best``, ``worst`` or ``latest``, by its place in the list from 1, or by its name."""
        found = self.all()
        if not found:
            raise ReplayError(
                f"There are no replays in {self.path}; 'hookloop eval RUN --record 1' records one, and a run of "
                "self-play keeps games as it trains."
            )
        by_name = {kept.name: kept.path for kept in found}
        if selector in by_name:
            return by_name[selector]
        if selector.isdecimal() and len(selector) < 10:
            if not 1 <= int(selector) <= len(found):
                raise ReplayError(f"There are {len(found)} replays in {self.path}, counted from 1; got {selector}.")
            return found[int(selector) - 1].path
        if selector not in WORDS:
            raise UnknownNameError("replay", selector, (*WORDS, *by_name))
        sound = [kept for kept in found if not kept.fault]
        if selector == "latest" and sound:
            return sound[-1].path
        scored = [kept for kept in sound if kept.return_ is not None]
        if not scored:
            raise ReplayError(f"No replay in {self.path} can be read: {found[-1].fault}")
        choose = max if selector == "best" else min
        return choose(reversed(scored), key=lambda kept: kept.return_ or 0.0).path

    def _files(self, pattern: str = "*") -> list[Path]:
        return sorted(file for file in self.path.glob(f"{pattern}{SUFFIX}") if not file.name.startswith("."))


def _plain(part: str) -> str:
    """Return a text as a part of a file's name: nothing in it leads anywhere."""
    return _ODD.sub("_", part)[:_MOST_LETTERS] or "_"
