"""Write the parts of docs/events.md that come from the code: the table of events and the picture of one epoch.

Usage: ``python tools/event_table.py`` prints them; with ``--write`` they replace what stands between the markers.
"""

import argparse
from pathlib import Path

from hookloop.core import BUILT_IN_EVENTS, Event, TrainingLoop
from hookloop.testing import ToyWorkload, TraceHook

PAGE = Path(__file__).parent.parent / "docs" / "events.md"
REFRESH = ".venv/bin/python tools/event_table.py --write"
PICTURED_CLOCKS = ("epochs", "env_steps", "episodes", "minibatches", "optimizer_steps")


def event_table() -> str:
    """Return the table of all built-in events as Markdown."""
    rows = [
        ("event", "fires", "counted on", "also accepted", "notes"),
        ("---",) * 5,
        *(_row(event) for event in BUILT_IN_EVENTS),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def epoch_picture() -> str:
    """Return the events of a one-epoch run of the toy workload in order, with the clocks each of them sees."""
    trace = TraceHook()
    workload = ToyWorkload(epochs=1, steps_per_epoch=2, num_envs=4, minibatch_size=4)
    TrainingLoop(workload, [trace], watch_signals=False).run()
    lines = [f"{'event':<26}" + "  ".join(PICTURED_CLOCKS)]
    depth = 0
    for fired in trace.fired:
        depth -= _is_half_of_pair(fired.event, "_end", "_start")
        counts = "  ".join(f"{fired.clocks[clock]:>{len(clock)}}" for clock in PICTURED_CLOCKS)
        lines.append(f"{'  ' * depth + fired.event:<26}{counts}")
        depth += _is_half_of_pair(fired.event, "_start", "_end")
    return "\n".join(["```text", *lines, "```"])


PARTS = {"event table": event_table, "picture of one epoch": epoch_picture}


def refreshed(page: str) -> str:
    """Return the page with every generated part made anew."""
    for name, make in PARTS.items():
        begin, end = f"<!-- begin {name}: {REFRESH} -->", f"<!-- end {name} -->"
        if (page.count(begin), page.count(end)) != (1, 1):
            raise SystemExit(f"docs/events.md needs the lines {begin!r} and {end!r}, once each.")
        before, rest = page.split(begin)
        page = f"{before}{begin}\n\n{make()}\n\n{end}{rest.partition(end)[2]}"
    return page


def _is_half_of_pair(event: str, suffix: str, other_suffix: str) -> bool:
    partner = event.removesuffix(suffix) + other_suffix
    return event.endswith(suffix) and partner in {each.name for each in BUILT_IN_EVENTS}


def _row(event: Event) -> tuple[str, ...]:
    notes = {
        "schedules do not apply": not event.is_scheduled,
        "every handler runs even if one fails": event.is_isolated,
        "last hook first": event.is_reversed,
    }
    return (
        f"`{event.name}`",
        event.fires,
        f"`{event.clock}`",
        ", ".join(f"`{alias}`" for alias in event.aliases),
        "; ".join(note for note, holds in notes.items() if holds),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print or write the generated parts of docs/events.md.")
    parser.add_argument("--write", action="store_true", help="rewrite docs/events.md instead of printing")
    if parser.parse_args().write:
        PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print("\n\n".join(make() for make in PARTS.values()))
