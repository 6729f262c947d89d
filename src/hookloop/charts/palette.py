"""Colours of runs that can be told apart, by people who see few colours too, on white and on black."""

from __future__ import annotations

# The order matters: the first few are the furthest apart in hue and in lightness.
COLOURS = ("#2f7ed8", "#e07b00", "#1a9e77", "#d4488e", "#8a63d2", "#b8860b", "#3aa6b9", "#c0392b")
DASHES = ("solid", "dash", "dot", "dashdot")
GAP_COLOUR = "#d62728"


def colour_of(place: int) -> str:
    """Return the colour of the run at a place; they repeat after eight."""
    return COLOURS[place % len(COLOURS)]


def dash_of(place: int) -> str:
    """Return the dash of the metric at a place; after four, and for every eighth run, they repeat."""
    return DASHES[place % len(DASHES)]
