"""The compact form: a run on a small terminal, the most important lines first."""

from __future__ import annotations

from hookloop.display import parts
from hookloop.display.board_note import board_note
from hookloop.display.canvas import LABEL, STRONG, Canvas, Glyphs, Line, joined, progress_bar
from hookloop.display.figures import share
from hookloop.display.game import compact_board, extras_line, is_shown_with_game, latest_moves, summary_line
from hookloop.display.game_statistics import statistics_line
from hookloop.display.view import RunView

MOST_LINES = 15
LINES_WITH_BOARD = 6
"""What is left to the rest where there is a board; the most important fits."""


def compact(view: RunView, width: int, height: int, glyphs: Glyphs) -> Canvas:
    """Return as many lines as there is room for, in their order; those that matter least are left out first."""
    board = compact_board(view, width, height - 1 - LINES_WITH_BOARD, glyphs)
    rows = [(rank, line) for rank, line in _rows(view, width, glyphs, has_board=bool(board)) if line.width]
    most_lines = max(min(height - 1 - len(board), MOST_LINES), 1)
    kept = sorted(range(len(rows)), key=lambda number: (rows[number][0], number))[:most_lines]
    return Canvas([line.fit(width, glyphs) for line in (*(rows[number][1] for number in sorted(kept)), *board)])


def _rows(view: RunView, width: int, glyphs: Glyphs, *, has_board: bool) -> list[tuple[int, Line]]:
    """Return all lines in their order, each with its rank: 0 is what goes last."""
    dot = glyphs.dot
    rows = [
        (2, _head(view, width, glyphs)),
        (0, _progress(view, width, glyphs)),
        (0, joined((parts.steps(view), parts.speed(view)), dot)),
        (1, joined((line for line in (*parts.times(view), parts.epoch(view)) if line.width), dot)),
        (5, _times(view, dot)),
        (1, board_note(view)),
        (2, summary_line(view, glyphs)),
        (3, extras_line(view, glyphs)),
        (4, Line() if view.game is None else statistics_line(view.game, glyphs)),
        (3, Line() if has_board else latest_moves(view, width)),
    ]
    curves = view.ordered_curves
    if view.game is not None:
        curves = {name: curve for name, curve in curves.items() if not is_shown_with_game(name)}
    name_width = min(max(map(len, curves), default=0), max(width // 3, 8))
    letters = max(min(width - name_width - 13, 24), 0)
    for number, (name, curve) in enumerate(curves.items()):
        rows.append((3 if number == 0 else 8, parts.curve_line(name, curve, name_width, letters, glyphs)))
    if view.evaluations:
        rows.append((4, Line().add("evaluation ", LABEL).extend(parts.evaluations(view, glyphs))))
    rows.append((6, Line().add("checkpoint ", LABEL).extend(parts.saved(view))))
    if view.trackers:
        is_well = all(each.is_well for each in view.trackers)
        rows.append((9 if is_well else 2, Line().add("trackers ", LABEL).extend(parts.trackers(view, glyphs))))
    if view.failures:
        rows.append((1, Line().add("failures ", LABEL).extend(parts.failures(view, glyphs))))
    if view.notes:
        rows.append((7, Line().add("notes ", LABEL).extend(parts.notes(view, glyphs))))
    return rows


def _head(view: RunView, width: int, glyphs: Glyphs) -> Line:
    status = parts.status(view).fit(width // 2, glyphs)
    title = parts.title(view, glyphs).fit(max(width - status.width - 2, 1), glyphs)
    return title.pad(width - status.width).extend(status)


def _progress(view: RunView, width: int, glyphs: Glyphs) -> Line:
    percent = parts.percent(view).rjust(9)
    return progress_bar(view.progress, max(width - len(percent), 0), glyphs).add(percent, STRONG)


def _times(view: RunView, dot: str) -> Line:
    return joined(
        (Line().add(f"{name} ", LABEL).add(share(part)) for name, part in parts.phase_shares(view).items()), dot
    )
