"""``hookloop hooks``: what can be named in a configuration, or what the hooks of a run have cost."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hookloop.core.events import EventTable
from hookloop.core.hook import CompositeHook, Hook, PeriodicHook, TrainerHook
from hookloop.core.registry import HookSource, HookType, hook_sources
from hookloop.errors import ConfigError, UnknownNameError


@dataclass(frozen=True, slots=True)
class HookCard:
    """What is known of a hook before it is built."""

    name: str
    origin: str
    summary: str
    events: list[str]
    schedule: str
    on_error: str
    ranks: str
    arguments: str
    problem: str = ""


def hooks(name: str | None = None, *, run: str | None = None, runs_dir: Path = Path("runs"), json: bool = False) -> int:
    """List every hook a configuration can name: its events, schedule and failure policy.

    Args:
        name: Show this hook alone, with its arguments.
        run: Show what the hooks of this run have cost, and what has gone wrong in them.
        runs_dir: The folder of all runs.
        json: Print JSON.
    """
    if run is not None:
        from hookloop.cli.hook_costs import show_costs

        return show_costs(run, runs_dir, hook=name, json=json)
    sources = hook_sources()
    if name is not None and name not in sources:
        raise UnknownNameError("hook called", name, sources)
    cards = [describe(source) for source in sources.values() if name in (None, source.name)]
    if json:
        _print_json(cards)
    else:
        _print_cards(cards, with_arguments=name is not None)
    return 0


def describe(source: HookSource) -> HookCard:
    """Look at a hook's class; a plugin that cannot be imported is listed with the reason."""
    try:
        hook_type = source.load()
    except ConfigError as error:
        return HookCard(source.name, source.origin, "", [], "", "", "", "", problem=str(error))
    return HookCard(
        name=source.name,
        origin=source.origin,
        summary=(inspect.getdoc(hook_type) or "").partition("\n")[0],
        events=_events(hook_type),
        schedule=_schedule(hook_type),
        on_error=str(getattr(hook_type, "on_error", None) or "raise"),
        ranks=str(getattr(hook_type, "ranks", None) or "main"),
        arguments=_arguments(hook_type),
    )


def _events(hook_type: HookType) -> list[str]:
    table = EventTable()
    written = [
        attribute[3:]
        for attribute in dir(hook_type)
        if attribute.startswith("on_")
        and callable(getattr(hook_type, attribute))
        and getattr(hook_type, attribute) is not getattr(TrainerHook, attribute, None)
    ]
    found = {table.find(name).name for name in written if name in table}
    if inspect.isclass(hook_type) and issubclass(hook_type, CompositeHook):
        return ["those of its children"]
    if inspect.isclass(hook_type) and issubclass(hook_type, Hook) and hook_type.run is not Hook.run:
        found.add(str(getattr(hook_type, "on", None) or "step_end"))
    return [name for name in table.names if name in found]


def _arguments(hook_type: HookType) -> str:
    parameters = inspect.signature(hook_type).parameters.values()
    return ", ".join(str(each).replace("'", "") for each in parameters) or "none"


def _schedule(hook_type: HookType) -> str:
    declared = getattr(hook_type, "schedule", None)
    if declared is not None and not inspect.isdatadescriptor(declared):
        return str(declared)
    if inspect.isclass(hook_type) and issubclass(hook_type, PeriodicHook):
        frequency = inspect.signature(hook_type).parameters.get("frequency")
        has_default = frequency is not None and frequency.default is not frequency.empty
        return (
            f"every {frequency.default} steps" if has_default and frequency is not None else "every `frequency` steps"
        )
    return "scheduled by its arguments or your configuration"


def _print_json(cards: list[HookCard]) -> None:
    Console().print_json(json.dumps([asdict(card) for card in cards]))


def _print_cards(cards: list[HookCard], *, with_arguments: bool) -> None:
    console = Console()
    for card in cards:
        console.print(Text.assemble((card.name, "bold"), f"  ({card.origin})"))
        for line in _lines(card, with_arguments=with_arguments):
            console.print(Padding(Text(line), (0, 0, 0, 4)))


def _lines(card: HookCard, *, with_arguments: bool) -> list[str]:
    if card.problem:
        return [f"cannot be used: {card.problem}"]
    lines = [
        card.summary.replace("``", ""),
        f"on {', '.join(card.events)}; {card.schedule}; on error: {card.on_error}; ranks: {card.ranks}",
    ]
    return [*lines, f"arguments: {card.arguments}"] if with_arguments else lines
