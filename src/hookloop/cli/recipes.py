"""``hookloop recipes`` and ``hookloop config``: what can be trained, and with which settings."""

from __future__ import annotations

import json as json_format

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hookloop.config.overrides import apply_overrides, origins
from hookloop.recipes import find_recipe, recipe_sources, split_arguments


def recipes(*, json: bool = False) -> None:
    """List the recipes that ``hookloop train`` can carry out.

    Args:
        json: Print JSON.
    """
    sources = recipe_sources()
    if json:
        rows = [{"name": s.name, "summary": s.summary, "origin": s.origin} for s in sources.values()]
        Console().print_json(json_format.dumps(rows))
        return
    table = Table("recipe", "what it trains", "from", box=None, pad_edge=False)
    for source in sources.values():
        table.add_row(source.name, Text(source.summary), source.origin)
    Console().print(table)


def config(*recipe: str, json: bool = False) -> None:
    """Show the settings of a recipe and where each value comes from.

    Args:
        recipe: The recipe's name, then settings to change as NAME=VALUE.
        json: Print JSON.
    """
    name, overrides = split_arguments(recipe)
    given = find_recipe(name)
    settings = apply_overrides(given, overrides, what=f"the recipe {name!r}")
    if json:
        Console().print_json(settings.model_dump_json())
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("origin", overflow="fold")
    for path, (value, origin) in origins(settings, given, overrides, recipe=name).items():
        table.add_row(path, Text(str(value)), Text(origin))
    Console().print(table)
