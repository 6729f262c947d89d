"""``hookloop plot``: the curves of one run or several, in a picture or a page."""

from __future__ import annotations

from pathlib import Path

from hookloop.charts import Page, Section, write_picture
from hookloop.cli.tables import say
from hookloop.errors import ConfigError
from hookloop.runs.folder import find_run
from hookloop.runs.panels import Clock, chosen, measured, overview, says_the_most, usual_clock

ENDINGS = (".png", ".svg", ".html")
DEFAULT_NAME = "curves.png"


def plot(
    *run: str,
    key: tuple[str, ...] = (),
    x: Clock | None = None,
    smooth: int = 1,
    to: Path | None = None,
    runs_dir: Path = Path("runs"),
) -> int:
    """Draw the curves of runs, each run in its colour.

    Args:
        run: Names of runs, beginnings of them, paths, or latest, which is taken if none is named.
        key: Metrics to draw, such as return/mean; by default those that say the most.
        x: The clock below the curves; environment steps by default, or epochs where there are none.
        smooth: Draw means over this many points, and what was measured pale behind them.
        to: The file, which ends in .png, .svg or .html; curves.png in the folder of the first run by default.
        runs_dir: The folder of all runs.
    """
    if smooth < 1:
        raise ConfigError(f"--smooth must be at least 1 point, got {smooth}.")
    folders = [find_run(runs_dir, name) for name in run or ("latest",)]
    names = [folder.name for folder in folders]
    if len(set(names)) < len(names):
        raise ConfigError(f"Every run is drawn once, and has a name of its own; got {', '.join(names)}.")
    file = to if to is not None else folders[0].path / DEFAULT_NAME
    if file.suffix.lower() not in ENDINGS:
        raise ConfigError(f"--to must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, got {str(file)!r}.")
    clock = x if x is not None else usual_clock(folders)
    runs = [measured(folder, clock, key.__contains__ if key else says_the_most) for folder in folders]
    panels = chosen(runs, key, clock, smooth) if key else overview(runs, clock, smooth)
    if not panels:
        raise ConfigError(f"There is nothing to draw in {', '.join(names)} yet: no epoch has been completed.")
    title = ", ".join(names)
    if file.suffix.lower() == ".html":
        Page(title, [Section("Curves", panels)]).write(file)
    else:
        write_picture(file, panels, title=title)
    say(f"wrote {file}: {len(panels)} panels of {title}")
    return 0
