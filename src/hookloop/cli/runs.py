"""``hookloop runs``: which runs there are, and what to do with them."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App

from hookloop.cli.tables import moment, note, say, short, show_table, write_json
from hookloop.errors import ConfigError, StatsError, did_you_mean
from hookloop.runs.folder import CONFIG_FILE, RunFolder, all_runs, find_run
from hookloop.runs.standing import summary
from hookloop.runs.tags import add_tags, read_tags, remove_tags
from hookloop.storage.lock import RunLock, require_free

REMOVED_PREFIX = ".removed-"

app = App(name="runs", help="List the runs and how they stand.", help_format="plaintext")
app.command("hookloop.cli.run_show:show", help="Show what a run is, how it went, and what to do next.")
app.command("hookloop.cli.run_diff:diff", help="Compare the settings and the curves of two runs.")


@app.default
def runs(
    *, runs_dir: Path = Path("runs"), tag: tuple[str, ...] = (), status: str | None = None, json: bool = False
) -> int:
    """List the runs and how they stand.

    Args:
        runs_dir: The folder of all runs.
        tag: Only runs with this tag; with all of them, if there are several.
        status: Only runs that stand so: running, completed, stopped, interrupted, failed, killed or damaged.
        json: Write them as JSON.
    """
    everything = [summary(folder) for folder in all_runs(runs_dir)]
    found = [each for each in everything if set(tag) <= set(each["tags"]) and status in (None, each["status"])]
    if json:
        write_json(found)
    elif not found:
        say(f"no run in {runs_dir} yet" if not everything else f"none of the {len(everything)} runs is like that")
    else:
        rows = [{**each, "began": moment(each["began"]), "tags": " ".join(each["tags"])} for each in found]
        show_table(tuple(found[0]), [[short(value) for value in row.values()] for row in rows])
    return 0


@app.command
def tag(run: str, *tags: str, runs_dir: Path = Path("runs"), remove: bool = False, json: bool = False) -> int:
    """Give a run tags, or take them away; without tags, show those it has.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        tags: Words of letters, digits, '.', '+', '-' and '_'.
        runs_dir: The folder of all runs.
        remove: Take the tags away.
        json: Write the tags as JSON.
    """
    folder = find_run(runs_dir, run)
    if tags:
        (remove_tags if remove else add_tags)(folder.path, tags)
        _copy_tags(folder)
    found = read_tags(folder.path)
    if json:
        write_json({"run": folder.name, "tags": found})
    else:
        say(f"{folder.name}: {' '.join(found) or 'no tags'}")
    return 0


@app.command
def rm(*run: str, runs_dir: Path = Path("runs"), yes: bool = False) -> int:
    """Remove runs with everything they hold.

    Args:
        run: The names of the runs, in full.
        runs_dir: The folder of all runs.
        yes: Do not ask.
    """
    if not run:
        raise ConfigError("Name the runs to remove: hookloop runs rm RUN...")
    folders = [_exact_run(runs_dir, name) for name in dict.fromkeys(run)]
    for folder in folders:
        require_free(folder.path)  # all of them first: either every run goes, or none
    if not yes and not _is_agreed(folders):
        say("nothing was removed")
        return 0
    for leftover in runs_dir.glob(f"{REMOVED_PREFIX}*"):
        _clear_away(leftover)
    for folder in folders:
        _remove(folder)
        say(f"removed {folder.path}")
    return 0


def _exact_run(runs_dir: Path, name: str) -> RunFolder:
    """Return a run that may be removed: what is directly in the folder of all runs, and not elsewhere by a link."""
    path = runs_dir / name
    if Path(name).name != name or name in ("", ".", ".."):
        path = Path(name)
        if path.is_symlink() or path.resolve().parent != runs_dir.resolve():
            raise ConfigError(
                f"{name!r} is no run in {runs_dir}; only those are removed. --runs-dir names another one."
            )
    if path.is_symlink():
        raise ConfigError(f"{path} is a link to {os.readlink(path)!r}; remove the link by hand. Nothing was removed.")
    if not (path / CONFIG_FILE).is_file():
        known = [folder.name for folder in all_runs(runs_dir)]
        raise ConfigError(f"There is no run {name!r} in {runs_dir}; what is removed is named in full."
                          f"{did_you_mean(name, known)}")  # fmt: skip
    return RunFolder(path)


def _is_agreed(folders: Sequence[RunFolder]) -> bool:
    names = ", ".join(folder.name for folder in folders)
    if not sys.stdin.isatty():
        raise ConfigError(f"Nobody is here to ask whether to remove {names}; add --yes.")
    sys.stdout.write(f"Remove {names} for good? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _remove(folder: RunFolder) -> None:
    try:
        has_server = not isinstance(folder.stats_url, Path)
    except ConfigError:
        has_server = False  # a run whose settings are damaged can be removed all the same
    with RunLock(folder.path):
        # A run is gone whole, in one act; what a kill leaves of the rest is cleared away by the next one removed.
        leftover = folder.path.rename(folder.path.with_name(f"{REMOVED_PREFIX}{secrets.token_hex(8)}"))
    _clear_away(leftover)
    if has_server:
        note(f"the statistics of {folder.name} are in a database of many runs, and stay there")


def _clear_away(leftover: Path) -> None:
    """Delete a folder that is no run any more; another process may be at it, too."""

    def excuse(_act: object, _path: str, found: tuple[type[BaseException], BaseException, object]) -> None:
        if not isinstance(found[1], FileNotFoundError):
            raise found[1]

    if not leftover.is_symlink():
        shutil.rmtree(leftover, onerror=excuse)


def _copy_tags(folder: RunFolder) -> None:
    from hookloop.stats.tags import write_tags

    url = folder.stats_url
    if isinstance(url, Path) and not url.exists():
        return
    try:
        write_tags(url, folder.read_config().run_id, lambda: read_tags(folder.path))
    except StatsError as error:
        note(f"the tags are kept, and queries do not see them yet: {error}")
