"""``hookloop runs show``: one run on one screen."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from hookloop.cli.run_details import Details, details
from hookloop.cli.tables import duration, moment, say, short, show_table, size, write_json
from hookloop.runs.folder import find_run


def show(run: str, *, runs_dir: Path = Path("runs"), json: bool = False) -> int:
    """Show what a run is, how it went, what it keeps, and what to do next.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        runs_dir: The folder of all runs.
        json: Write everything as JSON, settings and events included.
    """
    found = details(find_run(runs_dir, run))
    if json:
        write_json(found)
        return 0
    for name, text in headline(found).items():
        say(f"{name:<8}  {text}")
    _show_settings(found)
    _show_attempts(found)
    _show_checkpoints(found)
    _show_failures(found)
    say("next")
    for command in found["next"]:
        say(f"  {command}")
    return 0


def headline(found: Details) -> dict[str, str]:
    """Return the few lines that say the most about a run."""
    score = found["score"]
    because = f": {found['ended_because']}" if found["ended_because"] else ""
    lines = {
        "run": f"{found['run']} ({found['recipe']}, seed {found['seed']})",
        "status": f"{found['status']}{because}",
        "began": moment(found["created"]),
        "trained": _trained(found),
    }
    if score is not None:
        at = f"at step {score['best_at_env_steps']}" if _has_envs(found) else f"in epoch {score['best_at_epoch']}"
        best = "" if score["best"] is None else f", best {short(score['best'])} {at}"
        lines["score"] = f"{score['metric']} {short(score['last'])}{best}"
    if found["game"] is not None:
        lines["games"] = _games(found["game"]["view"])
    lines["tags"] = " ".join(found["tags"]) or "-"
    lines["size"] = f"{size(found['size_bytes'])} in {found['path']}"
    return lines


def changed_from(change: Details, found: Details) -> str:
    """Return the step from which on a change holds; a dash where it was not written down."""
    return short(change.get(found["step_clock"]))


def as_text(value: Any) -> str:
    """Return a setting as it is written."""
    return value if isinstance(value, str) else json_format.dumps(value)


def checkpoint_notes(row: Details) -> str:
    """Return what is special about a checkpoint."""
    words = [row["kind"]] if row["kind"] != "periodic" else []
    words += [word for word in ("best", "pinned") if row.get(f"is_{word}")]
    return ", ".join(words)


def attempt_rows(found: Details) -> list[list[str]]:
    """Return the attempts of a run as rows of ``ATTEMPT_COLUMNS``."""
    return [
        [
            str(each["attempt"]),
            moment(each["started"]),
            "-" if each["ended"] is None else duration(each["ended"] - each["started"]),
            each["outcome"] or "running",
            "its start" if each["resumed_from"] is None else f"step {each['resumed_from']}",
            f"{each['hostname']}, process {each['pid']}",
        ]
        for each in found["attempts"]
    ]


ATTEMPT_COLUMNS = ("attempt", "began", "took", "outcome", "from", "on")


def _has_envs(found: Details) -> bool:
    return found["step_clock"] == "env_steps"


def _trained(found: Details) -> str:
    clocks = found["clocks"]
    took, others = duration(clocks["seconds"]), f"{clocks['epoch']} epochs, {clocks['optimizer_steps']} optimizer steps"
    if not _has_envs(found):
        return f"{others} in {took}"
    return f"{clocks['env_steps']} steps in {took}, {others}, {clocks['episodes']} episodes"


def _games(view: Details) -> str:
    tally, (first, second) = view["tally"], view["seats"]
    won = f"{first} won {tally.get('first_wins', 0)}, {second} won {tally.get('second_wins', 0)}"
    rest = f"{tally.get('draws', 0)} draws, {tally.get('cut_off', 0)} cut off"
    return f"{sum(tally.values())} of {view['game']}: {won}, {rest}"


def _show_settings(found: Details) -> None:
    differences = found["differs_from_recipe"]
    if differences is None:
        say(f"settings: there is no recipe {found['recipe']!r} here to compare them with")
    elif differences:
        say("settings that differ from the recipe")
        for each in differences:
            say(f"  {each['setting']} {as_text(each['recipe'])} -> {as_text(each['run'])}")
    if found["changed_on_resume"]:
        say("settings that a resume changed")
        for each in found["changed_on_resume"]:
            values = f"{as_text(each['before'])} -> {as_text(each['after'])}"
            since = changed_from(each, found)
            say(f"  {each['path']} {values}" + ("" if since == "-" else f" from step {since} on"))


def _show_attempts(found: Details) -> None:
    if found["attempts"]:
        say("attempts")
        show_table(ATTEMPT_COLUMNS, attempt_rows(found), indent="  ")


def _show_checkpoints(found: Details) -> None:
    if not found["checkpoints"]:
        say("no checkpoint")
        return
    say("checkpoints")
    rows = [
        [each["name"], short(each.get("epoch")), short(each.get("score")), size(each.get("size_bytes", 0)),
         checkpoint_notes(each)]
        for each in found["checkpoints"]
    ]  # fmt: skip
    show_table(("name", "epoch", "score", "size", "notes"), rows, indent="  ")


def _show_failures(found: Details) -> None:
    if found["failures"]:
        say("failures")
    for each in found["failures"]:
        off = ", switched off" if each["is_disabled"] else ""
        say(f"  {each['hook']} {each['count']} times{off}, last at {each['last_event']}: {each['last_error']}")
