"""``hookloop replay``: step through a recorded episode, in the terminal or in a page."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hookloop.cli.boards import painted
from hookloop.cli.keys import Keys
from hookloop.errors import ConfigError
from hookloop.runs.folder import find_run

if TYPE_CHECKING:
    from hookloop.replays import Replay, ReplayFolder
    from hookloop.replays.text import Paint

HELP = "right or n: next   left or p: back   g: first   G: last   q: leave"


def replay(
    run: str,
    *,
    episode: str | None = None,
    to: Path | None = None,
    list: bool = False,
    letters: bool = False,
    runs_dir: Path = Path("runs"),
) -> int:
    """Step through a recorded episode.

    Args:
        run: The run's name or path; or the path of a replay.
        episode: Which one: best, worst, latest, its place in the list from 1, or its name; the best by default, and of
            games the latest.
        to: Write one page with a player to this file, such as episode.html; it must not exist.
        list: List the replays of the run.
        letters: Show the pieces of games as letters.
        runs_dir: The folder of all runs.
    """
    from hookloop.replays import ReplayFolder, read_replay, replay_page
    from hookloop.storage.atomic import write_bytes

    file = Path(run)
    if file.suffix != ".replay" or not file.is_file():
        folder = ReplayFolder(find_run(runs_dir, run).replays)
        if list:
            return _list(folder)
        file = folder.find(episode or folder.usual)
    recorded = read_replay(file)
    if to is not None:
        if to.suffix.lower() not in (".html", ".htm"):
            raise ConfigError(f"A replay is written as a page, to a file that ends with .html; got {str(to)!r}.")
        if to.exists():
            raise ConfigError(f"{to} exists already; nothing is replaced. Choose another name.")
        content = replay_page(recorded).encode()
        write_bytes(to, content)
        _say(f"wrote {to} ({len(content)} bytes), {file.stem}")
        return 0
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _step_through(recorded, partial(painted, in_letters=letters))
    return _print(recorded)


def _list(folder: ReplayFolder) -> int:
    found = folder.all()
    if not found:
        _say(f"no replay in {folder.path} yet")
    for number, kept in enumerate(found, start=1):
        about = kept.about
        what = f"damaged: {kept.fault}" if kept.fault else f"return {about.get('return')}, {about.get('length')} steps"
        if kept.is_game:
            what = f"{about.get('game')}, {about.get('end')}, {about.get('length')} moves"
        _say(f"{number:>4}  {kept.name}  {what}")
    return 0


def _print(recorded: Replay) -> int:
    from hookloop.replays.text import step_line, summary

    _say(summary(recorded))
    for step in range(recorded.steps):
        _say(step_line(recorded, step))
    return 0


def _step_through(recorded: Replay, paint: Paint) -> int:
    from hookloop.replays.text import step_screen, summary

    moves = {"right": 1, "n": 1, " ": 1, "left": -1, "p": -1, "g": -recorded.steps, "G": recorded.steps}
    step = 0
    with Keys(sys.stdin) as keys:
        while True:
            lines = [summary(recorded), *step_screen(recorded, step, paint), "", HELP]
            sys.stdout.write("\x1b[2J\x1b[H" + "\r\n".join(lines) + "\r\n")
            sys.stdout.flush()
            key = keys.read()
            if key in ("q", ""):
                return 0
            step = max(0, min(recorded.steps - 1, step + moves.get(key, 0)))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
