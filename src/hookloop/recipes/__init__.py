"""Recipes: functions that return the settings of a whole run. ``hookloop recipes`` lists them.

A recipe of your own is a function without arguments that returns settings such as an ``RLConfig``, registered by the
entry point group ``hookloop.recipes``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points

from hookloop.config.settings import RunSettings
from hookloop.errors import ConfigError, UnknownNameError

GROUP = "hookloop.recipes"
DEFAULT = "cartpole"

BUILT_IN = {
    "cartpole": "hookloop.recipes.classic_control:cartpole",
    "acrobot": "hookloop.recipes.classic_control:acrobot",
    "pendulum": "hookloop.recipes.classic_control:pendulum",
    "lunarlander": "hookloop.recipes.native:lunarlander",
    "minigrid": "hookloop.recipes.native:minigrid",
    "charlm": "hookloop.recipes.supervised:charlm",
    "digits": "hookloop.recipes.supervised:digits",
    "tictactoe": "hookloop.recipes.selfplay:tictactoe",
    "connect4": "hookloop.recipes.selfplay:connect4",
    "shogi": "hookloop.recipes.selfplay:shogi",
    "selfplay": "hookloop.recipes.selfplay:selfplay",
    "arithmetic": "hookloop.recipes.sequences:arithmetic",
}

Recipe = Callable[[], RunSettings]


@dataclass(frozen=True, slots=True)
class RecipeSource:
    """A recipe that can be named, and where it comes from."""

    name: str
    origin: str
    load: Callable[[], Recipe]

    @property
    def summary(self) -> str:
        """The first line of its description."""
        return (inspect.getdoc(self.load()) or "").partition("\n")[0]


def recipe_sources() -> dict[str, RecipeSource]:
    """Return all recipes by name; nothing is imported by looking."""
    found = {point.name: RecipeSource(point.name, point.module, point.load) for point in entry_points(group=GROUP)}
    for name, target in BUILT_IN.items():
        found[name] = RecipeSource(name, "hookloop", lambda target=target: _load(target))
    return found


def split_arguments(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Tell the recipe from the overrides among a command's words; without a recipe it is the default one."""
    if not words or "=" in words[0]:
        return DEFAULT, tuple(words)
    return words[0], tuple(words[1:])


def find_recipe(name: str) -> RunSettings:
    """Return the settings of the recipe called ``name``."""
    sources = recipe_sources()
    if name not in sources:
        error = UnknownNameError("recipe", name, sources)
        error.add_note("Run 'hookloop recipes' to list them all.")
        raise error
    made = sources[name].load()()
    if not isinstance(made, RunSettings):
        raise ConfigError(
            f"The recipe {name!r} returned a {type(made).__name__}; a recipe returns settings such as an RLConfig."
        )
    return made


def _load(target: str) -> Recipe:
    module, _, function = target.partition(":")
    return getattr(import_module(module), function)
