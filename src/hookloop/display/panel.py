"""The panel: a run on a terminal that has room for it."""

from __future__ import annotations

from itertools import zip_longest

from hookloop.display import parts
from hookloop.display.board_note import board_note
from hookloop.display.canvas import FRAME, LABEL, STRONG, UNICODE, Canvas, Glyphs, Line, progress_bar
from hookloop.display.compact import compact
from hookloop.display.game import game_rows, is_shown_with_game
from hookloop.display.view import RunView

LEAST_WIDTH = 98
LEAST_HEIGHT = 16
LEAST_GAME_WIDTH = 118
LEAST_GAME_HEIGHT = 25
MOST_WIDTH = 160  # a wider one is harder to read
HINT = "Ctrl-C saves and stops, twice leaves at once"
_LABEL_WIDTH = 13


def draw(view: RunView, width: int, height: int, glyphs: Glyphs = UNICODE, hint: str = HINT) -> Canvas:
    """Return a run as it fits into a terminal of ``width`` times ``height`` letters."""
    least = (LEAST_WIDTH, LEAST_HEIGHT) if view.game is None else (LEAST_GAME_WIDTH, LEAST_GAME_HEIGHT)
    if width < least[0] or height < least[1]:
        return compact(view, width, height, glyphs)
    return _panel(view, min(width, MOST_WIDTH), height, glyphs, hint)


def _panel(view: RunView, width: int, height: int, glyphs: Glyphs, hint: str) -> Canvas:
    inner = width - 4
    details = _details(view, glyphs)
    room = height - 1 - 4 - len(details)  # the cursor's line; the frame and the progress
    game = game_rows(view, inner, room, glyphs)
    if game:
        game = [Line(), *game][:room]
        room -= len(game)
    columns = _columns(view, inner, max(room, 1), glyphs) if not game or room > 2 else []
    room -= len(columns)
    gap = [Line()] if room >= 2 else []
    body = [_progress(view, inner, glyphs), _figures(view, inner), *game, *gap, *columns, *gap, *details]
    body += _blocks(view, room - 2)
    lines = [
        _edge(parts.title(view, glyphs), parts.facts(view, glyphs), width, glyphs, glyphs.corners[:2]),
        *(_framed(line, inner, glyphs) for line in body),
        _edge(parts.status(view), _hint(view, hint), width, glyphs, glyphs.corners[2:]),
    ]
    return Canvas(lines[: height - 1])


def _progress(view: RunView, width: int, glyphs: Glyphs) -> Line:
    percent = parts.percent(view).rjust(9)
    return progress_bar(view.progress, width - len(percent), glyphs).add(percent, STRONG)


def _figures(view: RunView, width: int) -> Line:
    found = [parts.steps(view), parts.speed(view), parts.epoch(view), *parts.times(view)]
    *cells, last = [cell for cell in found if cell.width]
    # Every cell begins at a place of its own, so that nothing moves when a figure grows.
    first = max(width // 3, cells[0].width + 2)
    slot = (width - first) // len(cells)
    line = cells[0].pad(first)
    for number, cell in enumerate(cells[1:], start=1):
        line.extend(cell).pad(first + slot * number)
    return line.pad(width - last.width).extend(last)


def _columns(view: RunView, width: int, most_lines: int, glyphs: Glyphs) -> list[Line]:
    """Return the metrics on the left and where the time goes on the right."""
    if not parts.phase_shares(view):  # whoever looks from outside may not know
        return _metric_rows(view, width, most_lines, glyphs)
    left_width = width * 3 // 5 - 2
    right_width = width - left_width - 3
    left = _metric_rows(view, left_width, most_lines, glyphs)
    right = _time_rows(view, right_width, most_lines, glyphs)
    found: list[Line] = []
    for metric, time in zip_longest(left, right):
        line = (metric or Line()).fit(left_width, glyphs).pad(left_width).add(f" {glyphs.column} ", LABEL)
        found.append(line.extend((time or Line()).fit(right_width, glyphs)))
    return found


def _metric_rows(view: RunView, width: int, most_lines: int, glyphs: Glyphs) -> list[Line]:
    curves = view.ordered_curves
    if view.game is not None:
        curves = {name: curve for name, curve in curves.items() if not is_shown_with_game(name)}
    if not curves:
        return [Line().add("no metrics yet", LABEL)]
    name_width = min(max(len(name) for name in curves), max(width * 2 // 5, 10))
    letters = max(min(width - name_width - 13, 32), 0)
    rows = [parts.curve_line(name, curve, name_width, letters, glyphs) for name, curve in curves.items()]
    return _first(rows, most_lines, "metrics")


def _time_rows(view: RunView, width: int, most_lines: int, glyphs: Glyphs) -> list[Line]:
    shares = parts.phase_shares(view)
    dearest = parts.hooks_by_cost(view)
    name_width = min(max(len(name) for name in (*shares, *(f"  {name}" for name, _ in dearest))), max(width // 2, 10))
    bar_width = max(min(width - name_width - 10, 24), 0)
    rows = [parts.share_line(name, part, name_width, bar_width, glyphs) for name, part in shares.items()]
    rows += [parts.share_line(name, part, name_width, bar_width, glyphs, "  ") for name, part in dearest]
    return _first(rows, most_lines, "hooks")


def _first(rows: list[Line], most_lines: int, what: str) -> list[Line]:
    if len(rows) <= most_lines:
        return rows
    kept = rows[: max(most_lines - 1, 0)]
    return [*kept, Line().add(f"and {len(rows) - len(kept)} more {what}", LABEL)]


def _details(view: RunView, glyphs: Glyphs) -> list[Line]:
    rows: list[tuple[str, Line]] = []
    if view.evaluations:
        rows.append(("evaluation", parts.evaluations(view, glyphs)))
    rows.append(("checkpoint", parts.saved(view)))
    if view.trackers:
        rows.append(("trackers", parts.trackers(view, glyphs)))
    rows.append(("failures", parts.failures(view, glyphs)))
    if view.game is None and view.game_fault:
        rows.append(("game", board_note(view)))
    if view.notes:
        rows.append(("notes", parts.notes(view, glyphs)))
    return [Line().add(label.ljust(_LABEL_WIDTH), LABEL).extend(line) for label, line in rows]


def _blocks(view: RunView, most_lines: int) -> list[Line]:
    """Return the extra blocks that have room as a whole: half a board is none."""
    found: list[Line] = []
    for block in view.blocks:
        if len(found) + 2 + len(block.lines) > most_lines:
            break
        found += [Line(), Line().add(block.title, STRONG), *(Line().add(line) for line in block.lines)]
    return found


def _hint(view: RunView, hint: str) -> Line:
    return Line().add(hint, LABEL) if hint and view.is_ticking else Line()


def _framed(line: Line, inner: int, glyphs: Glyphs) -> Line:
    side = glyphs.column
    return Line().add(f"{side} ", FRAME).extend(line.fit(inner, glyphs).pad(inner)).add(f" {side}", FRAME)


def _edge(left: Line, right: Line, width: int, glyphs: Glyphs, corners: str) -> Line:
    edge = glyphs.edge
    right = right.fit(max(width - 20, 0), glyphs)
    left = left.fit(width - 8 - right.width, glyphs)
    line = Line().add(corners[0] + edge + " ", FRAME).extend(left).add(" ", FRAME)
    ending = Line().add(" ", FRAME).extend(right).add(f" {edge}", FRAME) if right.width else Line()
    return line.add(edge * (width - 1 - line.width - ending.width), FRAME).extend(ending).add(corners[1], FRAME)
