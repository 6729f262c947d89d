"""What is to be said of a board besides itself."""

from __future__ import annotations

from hookloop.display.canvas import ATTENTION, Line
from hookloop.display.figures import duration
from hookloop.display.view import RunView

OLD_SECONDS = 5.0
"""A board that is older is shown with its age; one that is written every second never is, while all is well."""


def board_note(view: RunView) -> Line:
    """Return why there is no board, or how old it is; nothing if it is as it should be."""
    if view.game_fault:
        return Line().add(f"no board: {view.game_fault}", ATTENTION)
    age = view.game_age_seconds
    if view.game is None or age is None or age < OLD_SECONDS:
        return Line()
    return Line().add(f"board of {f'{age:.0f} s' if age < 60 else duration(age)} ago", ATTENTION)
