"""``hookloop runs diff``: what was set otherwise in two runs, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hookloop.cli.changes import changes_between
from hookloop.cli.run_show import as_text
from hookloop.cli.tables import note, say, short, show_table, write_json
from hookloop.display import sparkline
from hookloop.errors import StatsError
from hookloop.runs.folder import RunFolder, find_run
from hookloop.runs.standing import open_stats

Curves = dict[str, list[float]]
_IDENTITY = ("recipe", "seed", "threads")


def diff(a: str, b: str, *, runs_dir: Path = Path("runs"), json: bool = False) -> int:
    """Compare two runs: the settings that differ, and the metrics they share.

    Args:
        a: A run's name, the beginning of it, its path, or latest.
        b: Another one.
        runs_dir: The folder of all runs.
        json: Write the comparison as JSON.
    """
    folders = find_run(runs_dir, a), find_run(runs_dir, b)
    settings = _settings(*folders)
    left, right = (_curves(folder) for folder in folders)
    shared = [name for name in left if name in right]
    only = [sorted(left.keys() - right.keys()), sorted(right.keys() - left.keys())]
    names = [folder.name for folder in folders]
    if json:
        metrics = {name: {"a": left[name][-1], "b": right[name][-1]} for name in shared}
        write_json({"a": names[0], "b": names[1], "settings": settings, "metrics": metrics,
                    "only_in_a": only[0], "only_in_b": only[1]})  # fmt: skip
        return 0
    if not settings:
        say("the settings are the same")
    for each in settings:
        say(f"{each['setting']} {as_text(each['a'])} -> {as_text(each['b'])}")
    if shared:
        say("")
        _show_shared(names, {name: (left[name], right[name]) for name in shared})
    for name, keys in zip(names, only, strict=True):
        if keys:
            say(f"only in {name}: {', '.join(keys)}")
    return 0


def _settings(a: RunFolder, b: RunFolder) -> list[dict[str, Any]]:
    one, other = a.read_config(), b.read_config()
    pairs = [(name, getattr(one, name), getattr(other, name)) for name in _IDENTITY]
    pairs += [(each.path, each.before, each.after) for each in changes_between(one.settings, other.settings)]
    return [{"setting": name, "a": before, "b": after} for name, before, after in pairs if before != after]


def _curves(folder: RunFolder) -> Curves:
    run_id = folder.read_config().run_id
    try:
        with open_stats(folder) as reader:
            curves = {name: [point.value for point in reader.metric(run_id, name)] for name in reader.keys(run_id)}
    except StatsError as error:
        note(str(error))
        return {}
    return {name: values for name, values in curves.items() if values}


def _show_shared(names: Sequence[str], shared: dict[str, tuple[list[float], list[float]]]) -> None:
    rows = [
        [name, short(one[-1]), short(other[-1]), _change(one[-1], other[-1]), sparkline(one), sparkline(other)]
        for name, (one, other) in shared.items()
    ]
    show_table(("metric", *names, "change", f"{names[0]}, curve", f"{names[1]}, curve"), rows)


def _change(before: float, after: float) -> str:
    """Return how much more the second is, in percent of the first."""
    change = (after - before) / abs(before) if before else float("nan")
    return f"{change:+.0%}" if abs(change) < 100 else "-"  # far apart, not finite, or from zero: no share says it
