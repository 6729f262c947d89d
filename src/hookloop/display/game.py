"""A game under way: its board, its moves, how games ended so far, and how full the buffer is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.style import Style

from hookloop.boards import Board, GameView, Move, draw_board
from hookloop.display.board_note import board_note
from hookloop.display.canvas import (
    ASCII,
    ATTENTION,
    CURVE,
    LABEL,
    PLAIN,
    STRONG,
    TITLE,
    Glyphs,
    Line,
    joined,
    share_bar,
)
from hookloop.display.figures import count, number, rate, share
from hookloop.display.game_statistics import NAME_WIDTH, OUTCOMES, position_line, recent_line, statistics_lines
from hookloop.display.sparkline import sparkline
from hookloop.display.view import Curve, RunView

LENGTH, RATING = "episode/length", "eval/rating"
_RATES = "game/"
_STYLES: dict[str, Style] = {
    "first": Style.parse("bold bright_yellow"),
    "second": Style.parse("bold bright_cyan"),
    "empty": Style.parse("bright_black"),
    "mark": ATTENTION,
    "label": LABEL,
    "text": PLAIN,
}
_FIGURES_WIDTH = 46
_GAP = "   "
_LINES_BELOW = 6
"""What a panel has besides a game, if it has room: some metrics, and where the time goes."""


def is_shown_with_game(name: str) -> bool:
    """Tell whether a metric is one that stands beside the board."""
    return name in (LENGTH, RATING) or name.startswith(_RATES)


def board_lines(board: Board, seats: tuple[str, str], glyphs: Glyphs) -> list[Line]:
    """Return a board and its hands, in colours."""
    lines: list[Line] = []
    for drawn in draw_board(board, is_ascii=glyphs is ASCII, names=seats):
        line = Line()
        for ink in drawn:
            line.add(ink.text, _STYLES[ink.role])
        lines.append(line)
    return lines


def game_rows(view: RunView, width: int, most_lines: int, glyphs: Glyphs) -> list[Line]:
    """Return a game as part of a panel: the board, figures beside it, and its moves; at most so many lines."""
    game = view.game
    if game is None or most_lines < 1:
        return []
    board = board_lines(game.board, game.seats, glyphs)
    board_width = max((line.width for line in board), default=0)
    if len(board) > most_lines or board_width + len(_GAP) + _FIGURES_WIDTH > width:  # half a board is none
        board, board_width = [], 0
    figures_width = min(_FIGURES_WIDTH, width)
    figures = figure_lines(view, game, figures_width, glyphs)
    left_over = max(len(board), most_lines - _LINES_BELOW) - len(figures)
    figures += statistics_lines(game, figures_width, glyphs)[: max(left_over, 0)]
    figures = [line.fit(figures_width, glyphs) for line in figures]
    columns = [(board, board_width)] if board else []
    columns.append((figures, _FIGURES_WIDTH))
    left = width - sum(taken + len(_GAP) for _, taken in columns)
    height = min(max(len(board), len(figures)), most_lines)
    columns.append((move_lines(game, left, height), max(left, 0)))
    return _beside(columns, most_lines)


def compact_board(view: RunView, width: int, most_lines: int, glyphs: Glyphs) -> list[Line]:
    """Return the board for a small terminal, with its moves beside it; nothing if it has no room as a whole."""
    game = view.game
    if game is None:
        return []
    board = board_lines(game.board, game.seats, glyphs)
    board_width = max((line.width for line in board), default=0)
    if len(board) > most_lines or board_width > width:
        return []
    left = width - board_width - len(_GAP)
    return _beside([(board, board_width), (move_lines(game, left, len(board)), max(left, 0))], most_lines)


def figure_lines(view: RunView, game: GameView, width: int, glyphs: Glyphs) -> list[Line]:
    """Return how the game stands and how games ended, with trends, how long they are, the rating and the buffer."""
    lines = [
        Line().add(game.game, TITLE).add(glyphs.dot, LABEL).extend(_ended(view, game)),
        position_line(game, glyphs),
    ]
    letters = max(width - NAME_WIDTH - 18, 0)
    for outcome, name in zip(OUTCOMES, _outcome_names(game), strict=True):
        ended = game.tally.get(outcome, 0)
        line = _named(name).add(count(ended).rjust(9), STRONG)
        line.add(share(ended / game.games).rjust(8) if game.games else "-".rjust(8)).add(" ")
        lines.append(line.extend(_trend(view.curves.get(_RATES + outcome), letters, glyphs)))
    lines.append(recent_line(game))
    for name, key in (("moves a game", LENGTH), ("rating", RATING)):
        curve = view.curves.get(key)
        if curve is not None:
            line = _named(name).add(number(curve.latest).rjust(9), STRONG).add(" " * 9)
            lines.append(line.extend(_trend(curve, letters, glyphs)))
    if game.buffered is not None:
        filled, size = game.buffered
        line = _named("buffer").add(f"{count(filled)}/{count(size)}".rjust(9)).add(" " * 9)
        lines.append(line.extend(share_bar(filled / max(size, 1), letters, glyphs)))
    lines.insert(1, board_note(view))
    return [line for line in lines if line.width]


def summary_line(view: RunView, glyphs: Glyphs) -> Line:
    """Return how games ended, in one line."""
    game = view.game
    if game is None:
        return Line()
    found = [Line().add(f"{game.game} ", TITLE).extend(_ended(view, game))]
    for outcome, name in zip(OUTCOMES, _outcome_names(game), strict=True):
        ended = game.tally.get(outcome, 0)
        if ended:
            found.append(Line().add(f"{name} ", LABEL).add(share(ended / game.games), STRONG))
    return joined(found, glyphs.dot)


def extras_line(view: RunView, glyphs: Glyphs) -> Line:
    """Return the length of games, the buffer and the rating, in one line."""
    game, found = view.game, list[Line]()
    if game is None:
        return Line()
    if game.buffered is not None:
        found.append(Line().add("buffer ", LABEL).add(f"{game.buffered[0]}/{game.buffered[1]}", STRONG))
    for name, key in (("moves a game", LENGTH), ("rating", RATING)):
        curve = view.curves.get(key)
        if curve is not None:
            line = Line().add(f"{name} ", LABEL).add(number(curve.latest), STRONG).add(" ")
            found.append(line.extend(_trend(curve, 12, glyphs)))
    return joined(found, glyphs.dot)


def latest_moves(view: RunView, width: int) -> Line:
    """Return the latest moves in one line."""
    if view.game is None or not view.game.moves:
        return Line()
    line = Line()
    for move in reversed(view.game.moves):
        found = _move(move, is_last=not line.width)
        if line.width and line.width + found.width + 2 > width:
            break
        line = joined((found, line), "  ") if line.width else found
    return line


def move_lines(game: GameView, width: int, most_lines: int) -> list[Line]:
    """Return the latest moves, one turn in a line as far as that is wide enough."""
    if not game.moves or most_lines < 1 or width < 8:
        return []
    cell = max(_move(move).width for move in game.moves) + 2
    per_line = 2 if width >= 2 * cell else 1
    # A line begins with a move of whoever moves first, whatever has been left out.
    first = (game.moves[-1].number - 1) // per_line - most_lines + 1
    found: list[Line] = []
    for move in game.moves:
        place, column = divmod(move.number - 1, per_line)
        if place < first:
            continue
        if not found or column == 0:
            found.append(Line())
        found[-1].pad(column * cell).extend(_move(move, is_last=move is game.moves[-1]))
    return found[-most_lines:]


def _move(move: Move, *, is_last: bool = False) -> Line:
    style = STRONG if is_last else _STYLES["first" if move.seat == 0 else "second"]
    return Line().add(f"{move.number:>3} ", LABEL).add(move.text, style)


def _ended(view: RunView, game: GameView) -> Line:
    line = Line().add(count(game.games), STRONG).add(" game" if game.games == 1 else " games", LABEL)
    if game.games and view.elapsed_seconds >= 1:
        line.add(f", {rate(game.games / view.elapsed_seconds * 3600)} an hour", LABEL)
    return line


def _outcome_names(game: GameView) -> tuple[str, ...]:
    first, second = game.seats
    return f"{first} wins", f"{second} wins", "draws", "cut off"


def _named(name: str) -> Line:
    return Line().add(name.ljust(NAME_WIDTH), LABEL)


def _trend(curve: Curve | None, letters: int, glyphs: Glyphs) -> Line:
    return Line() if curve is None else Line().add(sparkline(curve.points, letters, glyphs.bars), CURVE)


def _beside(columns: Sequence[tuple[list[Line], int]], most_lines: int) -> list[Line]:
    """Return columns of lines side by side."""
    found: list[Line] = []
    for row in zip_longest(*(lines for lines, _ in columns)):
        line, begin = Line(), 0
        for cell, (_, width) in zip(row, columns, strict=True):
            if cell is not None:
                line.pad(begin).extend(cell)
            begin += width + len(_GAP)
        found.append(line)
    return found[:most_lines]
