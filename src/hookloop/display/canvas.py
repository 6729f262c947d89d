"""Lines of styled text that are never wider than they may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from hookloop.display.figures import printable
from hookloop.display.sparkline import ASCII_BARS, BARS

PLAIN = Style.null()
STRONG = Style.parse("bold")
LABEL = Style.parse("dim")
TITLE = Style.parse("bold cyan")
FRAME = Style.parse("cyan")
DONE = Style.parse("green")
LEFT = Style.parse("bright_black")
CURVE = Style.parse("cyan")
TIME = Style.parse("magenta")
GOOD = Style.parse("green")
ATTENTION = Style.parse("yellow")
BAD = Style.parse("bold red")


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The letters that pictures are made of."""

    bars: str = BARS
    full: str = "━"
    rest: str = "─"
    parts: str = "▏▎▍▌▋▊▉█"
    dot: str = " · "
    more: str = "…"
    column: str = "│"
    corners: str = "╭╮╰╯"
    edge: str = "─"


UNICODE = Glyphs()
ASCII = Glyphs(ASCII_BARS, "=", "-", "#", " | ", "~", "|", "++++", "-")


@dataclass(slots=True)
class Line:
    """One line: pieces of text, each with its style, and the cells they take."""

    pieces: list[tuple[str, Style]] = field(default_factory=list[tuple[str, Style]])
    width: int = 0

    def add(self, text: str, style: Style = PLAIN) -> Line:
        """Add a piece at the end."""
        if text:
            text = printable(text)
            self.pieces.append((text, style))
            self.width += cell_len(text)
        return self

    def extend(self, other: Line) -> Line:
        """Add all pieces of another line."""
        self.pieces.extend(other.pieces)
        self.width += other.width
        return self

    def pad(self, width: int) -> Line:
        """Fill up with blanks."""
        return self.add(" " * (width - self.width)) if width > self.width else self

    def fit(self, width: int, glyphs: Glyphs = UNICODE) -> Line:
        """Cut off what is wider than ``width``, and say so with an ellipsis."""
        if self.width <= width:
            return self
        kept, room = Line(), max(width - 1, 0)
        for text, style in self.pieces:
            if kept.width + cell_len(text) > room:
                kept.add(set_cell_size(text, room - kept.width), style)
                break
            kept.add(text, style)
        return kept.add(glyphs.more, LABEL) if width > 0 else kept

    @property
    def text(self) -> str:
        """The line without its styles."""
        return "".join(text for text, _ in self.pieces)


class Canvas:
    """Lines that were laid out already: rich only has to write them."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = list(lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Canvas) and self.lines == other.lines

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, line in enumerate(self.lines):
            if number:
                yield Segment.line()
            yield from (Segment(text, style) for text, style in line.pieces)

    @property
    def text(self) -> str:
        """What is to be seen, without styles."""
        return "\n".join(line.text.rstrip() for line in self.lines)


def joined(parts: Iterable[Line], between: str) -> Line:
    """Return lines one after the other, with something between them."""
    found = Line()
    for part in parts:
        if found.pieces:
            found.add(between, LABEL)
        found.extend(part)
    return found


def shortened(name: str, width: int, glyphs: Glyphs) -> str:
    """Return a name of exactly so many cells: filled up, or cut in its middle, since both ends tell it from others."""
    name = printable(name)
    if cell_len(name) <= width:
        return name + " " * (width - cell_len(name))
    if width < 5:
        return set_cell_size(name, width)
    head = (width - 1) // 2
    tail = name[-(width - 1 - head) :]
    while cell_len(tail) > width - 1 - head:
        tail = tail[1:]
    return set_cell_size(set_cell_size(name, head) + glyphs.more + tail, width)


def progress_bar(progress: float | None, width: int, glyphs: Glyphs) -> Line:
    """Return a bar of exactly so many cells, empty if the goal is not known."""
    done = int((progress or 0.0) * width)
    return Line().add(glyphs.full * done, DONE).add(glyphs.rest * (width - done), LEFT)


def share_bar(share: float, width: int, glyphs: Glyphs, style: Style = TIME) -> Line:
    """Return a bar of at most so many cells, as long as its share."""
    steps = len(glyphs.parts)
    eighths = round(min(max(share, 0.0), 1.0) * width * steps)
    whole, rest = divmod(eighths, steps)
    return Line().add(glyphs.parts[-1] * whole + (glyphs.parts[rest - 1] if rest else ""), style)
