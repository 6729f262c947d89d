"""How games are played, in lines: the position that is shown, how the latest games ended, and what happens in them."""

from __future__ import annotations

from hookloop.boards import GameView
from hookloop.display.canvas import ATTENTION, LABEL, PLAIN, STRONG, Glyphs, Line, joined
from hookloop.display.figures import share

NAME_WIDTH = 14
OUTCOMES = ("first_wins", "second_wins", "draws", "cut_off")
_BY_SEAT = {
    "captures": "captures",
    "turned": "turned",
    "drops": "drops",
    "checks": "checks",
    "promotions": "promotions",
    "king_moves": "king moves",
}
_SINGLE = {"best_capture": "best taken", "longest_quiet": "most quiet", "lead": "final lead"}
_CELL_WIDTH = 22
_BETWEEN = "  "


def position_line(game: GameView, glyphs: Glyphs) -> Line:
    """Return how the position that is shown stands, as far as its game knows such things."""
    found: list[Line] = []
    if game.is_check:
        found.append(Line().add("check", ATTENTION))
    if game.material is not None:
        found.append(Line().add("material ", LABEL).add("{:g} : {:g}".format(*game.material), STRONG))
    if game.quiet_moves is not None:
        found.append(Line().add("quiet ", LABEL).add(str(game.quiet_moves), STRONG))
    if game.king_moves is not None:
        found.append(Line().add("king ", LABEL).add(str(game.king_moves), STRONG))
    return joined(found, glyphs.dot)


def recent_line(game: GameView) -> Line:
    """Return how the latest games ended, in the order of the outcomes."""
    games = sum(game.recent.values())
    if not games:
        return Line()
    line = Line().add(f"last {games:,}".ljust(NAME_WIDTH), LABEL)
    for outcome in OUTCOMES:
        line.add(share(game.recent.get(outcome, 0) / games).rjust(8))
    return line


def statistics_lines(game: GameView, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the figures of games that were looked at, the most important first; two in a line if it is wide enough."""
    cells = [*_by_seat(game), *_single(game)]
    per_line = 2 if width >= 2 * _CELL_WIDTH + len(_BETWEEN) else 1
    pairs = [joined(cells[first : first + per_line], _BETWEEN) for first in range(0, len(cells), per_line)]
    texts = [line for line in (_opening(game), _hot_squares(game)) if line.width]
    if texts:
        texts[-1].add(f"{glyphs.dot}of {game.statistics.get('looked_at', 0):,.0f} games", LABEL)
    # What is done most, how games begin, and where; then the rest.
    return [*pairs[:1], *texts, *pairs[1:]]


def statistics_line(game: GameView, glyphs: Glyphs) -> Line:
    """Return the position and the most important figures in one line."""
    found = [position_line(game, glyphs)]
    for name in ("captures", "turned"):
        if f"first_{name}" in game.statistics:
            found.append(Line().add(f"{_BY_SEAT[name]} ", LABEL).add(_both(game, name), STRONG))
    if game.opening:
        found.append(Line().add("opening ", LABEL).add(_opening_text(game), STRONG))
    if game.hot_squares:
        found.append(Line().add("hot ", LABEL).add(game.hot_squares[0][0], STRONG))
    return joined((line for line in found if line.width), glyphs.dot)


def _by_seat(game: GameView) -> list[Line]:
    return [_cell(label, _both(game, name)) for name, label in _BY_SEAT.items() if f"first_{name}" in game.statistics]


def _single(game: GameView) -> list[Line]:
    known = game.statistics
    return [_cell(label, f"{known[name]:{'+' if name == 'lead' else ''}.1f}") for name, label in _SINGLE.items()
            if name in known]  # fmt: skip


def _both(game: GameView, name: str) -> str:
    first, second = (game.statistics.get(f"{who}_{name}") for who in ("first", "second"))
    return " : ".join("-" if value is None else f"{value:.1f}" for value in (first, second))


def _cell(label: str, value: str) -> Line:
    return Line().add(f"{label} ", LABEL).add(value.rjust(_CELL_WIDTH - len(label) - 1), PLAIN)


def _opening(game: GameView) -> Line:
    return Line().add("opening".ljust(NAME_WIDTH), LABEL).add(_opening_text(game)) if game.opening else Line()


def _opening_text(game: GameView) -> str:
    return f"{_BETWEEN.join(game.opening)} {share(game.statistics.get('opening_share', 0.0))}"


def _hot_squares(game: GameView) -> Line:
    if not game.hot_squares:
        return Line()
    return Line().add("hot squares".ljust(NAME_WIDTH), LABEL).add(" ".join(name for name, _ in game.hot_squares))
