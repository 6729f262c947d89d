"""A page that holds everything it shows: no request leaves the browser, and nothing in the data is executed."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from hookloop.charts.curve import Panel, runs_of
from hookloop.charts.figures import Figure, bars_of, figure_of
from hookloop.charts.palette import colour_of
from hookloop.errors import MissingExtraError
from hookloop.storage.atomic import write_bytes


@dataclass(frozen=True, slots=True)
class Facts:
    """A few figures that are seen first, by name."""

    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts; ``numbers`` are the columns that stand to the right, and a search field hides other rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[str] = frozenset()
    is_searchable: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Lying bars, by name."""

    values: Mapping[str, float]
    unit: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Parts that are shown on request."""

    title: str
    parts: Sequence[Part]


Part = Facts | Prose | Table | Bars | Folded | Panel


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a title; panels that follow each other stand side by side."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of charts and tables, readable on a phone, in the dark, and on paper.

    Example::

        Page("first", [Section("Curves", [Panel("return", [curve])])]).write(Path("first.html"))
    """

    title: str
    sections: Sequence[Section]
    subtitle: str = ""

    def write(self, path: Path) -> None:
        """Write the page, whole or not at all."""
        write_bytes(path, self.html().encode(), is_private=False)

    def html(self) -> str:
        """Return the page."""
        runs = runs_of([panel for section in self.sections for panel in _panels(section.parts)])
        body = _Body(runs)
        sections = "".join(map(body.section, self.sections))
        scripts = [_plotly(), _asset("draw.js"), _asset("page.js")]
        policy = (
            f"default-src 'none'; script-src {' '.join(map(_hashed, scripts))}; style-src 'unsafe-inline'; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        )
        head = (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
            f"<title>{escape(self.title)}</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n"
        )
        titles = f"<h1>{escape(self.title)}</h1>" + (f"<p>{escape(self.subtitle)}</p>" if self.subtitle else "")
        header = f"<header>{titles}{_legend(runs)}</header>\n"
        return (
            f"{head}<body>\n{header}<main>\n{sections}</main>\n"
            "<noscript><p>The charts need JavaScript; the tables do not.</p></noscript>\n"
            f'<script type="application/json" id="figures">{_embedded(body.figures)}</script>\n'
            + "".join(f"<script>{script}</script>\n" for script in scripts)
            + "</body>\n</html>\n"
        )


class _Body:
    """Writes the parts of a page, and keeps the figures that are drawn into them."""

    def __init__(self, runs: Sequence[str]) -> None:
        self.figures: list[Figure] = []
        self._runs = runs

    def section(self, section: Section) -> str:
        return f"<section>\n<h2>{escape(section.title)}</h2>\n{self._parts(section.parts)}</section>\n"

    def _parts(self, parts: Sequence[Part]) -> str:
        written: list[str] = []
        for is_panel, group in groupby(parts, key=lambda part: isinstance(part, Panel)):
            inner = "".join(map(self._part, group))
            written.append(f'<div class="grid">\n{inner}</div>\n' if is_panel else inner)
        return "".join(written)

    def _part(self, part: Part) -> str:
        match part:
            case Panel():
                chart = self._chart(figure_of(part, self._runs))
                return f'<figure class="card"><figcaption>{escape(part.title)}</figcaption>{chart}</figure>\n'
            case Bars():
                return f'<div class="card">{self._chart(bars_of(part.values, part.unit))}</div>\n'
            case Facts():
                items = (f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in part.values.items())
                return f'<dl class="facts">{"".join(items)}</dl>\n'
            case Prose():
                return f"<p>{escape(part.text)}</p>\n"
            case Table():
                return _table(part)
            case Folded():
                return f"<details><summary>{escape(part.title)}</summary>\n{self._parts(part.parts)}</details>\n"

    def _chart(self, figure: Figure) -> str:
        self.figures.append(figure)
        return f'<div class="chart" data-figure="{len(self.figures) - 1}"></div>'


def _panels(parts: Sequence[Part]) -> Iterator[Panel]:
    for part in parts:
        if isinstance(part, Panel):
            yield part
        elif isinstance(part, Folded):
            yield from _panels(part.parts)


def _legend(runs: Sequence[str]) -> str:
    """Return a switch for each run, in its colour, where there are several."""
    if len(runs) < 2:
        return ""
    buttons = (
        f'<button type="button" aria-pressed="true" data-run="{escape(run)}">'
        f'<svg width="12" height="12" aria-hidden="true"><circle cx="6" cy="6" r="5" fill="{colour_of(k)}"/></svg>'
        f"{escape(run)}</button>"
        for k, run in enumerate(runs)
    )
    return f'<div class="runs">{"".join(buttons)}</div>'


def _table(table: Table) -> str:
    marks = [' class="number"' if column in table.numbers else "" for column in table.columns]
    head = "".join(f'<th scope="col"{m}>{escape(c)}</th>' for c, m in zip(table.columns, marks, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{m}>{escape(c)}</td>" for c, m in zip(row, marks, strict=True)) + "</tr>\n"
        for row in table.rows
    )
    search = '<input type="search" placeholder="Search" aria-label="Search">\n' if table.is_searchable else ""
    inner = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>"
    return f'<div class="table">{search}<div class="scroll">{inner}</div></div>\n'


def _embedded(found: object) -> str:
    """Return JSON that no text in it can end early."""
    text = json.dumps(found, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hashed(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return files("hookloop.charts").joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    """Return plotly's script, from the installed package."""
    try:
        place = files("plotly")
    except ModuleNotFoundError as error:
        raise MissingExtraError("A page of curves", "plot") from error
    return place.joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
