"""Tags of a run: an empty file each, in the folder ``tags`` of the run.

The files are the truth. To add or remove one is a single act of the file system, so that any number of processes may
do it at once, and a run that trains does not notice. The column ``tags`` of the statistics is a copy, for queries.
"""

from __future__ import annotations

import re
from pathlib import Path

from hookloop.errors import ConfigError, UnknownNameError

TAGS_FOLDER = "tags"
_TAG = re.compile(r"[A-Za-z0-9][\w.+\-]{0,63}", re.ASCII)


def read_tags(run: Path) -> list[str]:
    """Return the tags of a run in order."""
    try:
        names = [file.name for file in (run / TAGS_FOLDER).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in names if _TAG.fullmatch(name))


def add_tags(run: Path, tags: tuple[str, ...]) -> None:
    """Give a run tags; those it has already stay."""
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise ConfigError(
                f"A tag must be up to 64 letters, digits, '.', '+', '-' or '_', got {tag!r}; it names a file."
            )
    (run / TAGS_FOLDER).mkdir(exist_ok=True)
    for tag in tags:
        (run / TAGS_FOLDER / tag).touch()


def remove_tags(run: Path, tags: tuple[str, ...]) -> None:
    """Take tags from a run."""
    known = read_tags(run)
    for tag in tags:
        if tag not in known:
            raise UnknownNameError("tag", tag, known, where=f"on the run {run.name!r}")
    for tag in tags:
        (run / TAGS_FOLDER / tag).unlink(missing_ok=True)
