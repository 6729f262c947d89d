"""Panels as a picture: PNG or SVG, by matplotlib without a screen."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hookloop.charts.curve import Curve, Panel, label_of, runs_of, smoothed, thinned
from hookloop.charts.palette import GAP_COLOUR, colour_of
from hookloop.errors import MissingExtraError
from hookloop.storage.atomic import write_bytes

Live = Any

FORMATS = ("png", "svg")
MOST_COLUMNS = 3
_INCHES = (4.6, 3.1)
_DOTS_PER_INCH = 144
_INK, _PALE_INK = "#22272e", "#6b7480"
_LINES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#b4bac2",
    "axes.labelcolor": _PALE_INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e9ed",
    "grid.linewidth": 0.8,
    "xtick.color": _PALE_INK,
    "ytick.color": _PALE_INK,
    "text.color": _INK,
    "text.parse_math": False,  # a name with dollar signs is a name
    "svg.hashsalt": "hookloop",  # the same curves give the same file
}


def write_picture(path: Path, panels: Sequence[Panel], *, title: str = "") -> None:
    """Write panels side by side into a PNG or SVG file, whole or not at all.

    Args:
        path: The file; its ending decides the format.
        panels: What to draw; at least one.
        title: What stands above.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS or not panels:
        raise ValueError(f"A picture is a .png or .svg file of at least one panel, got {path} and {len(panels)}.")
    matplotlib, figure_type = _matplotlib()
    runs = runs_of(panels)
    columns = min(len(panels), MOST_COLUMNS) if len(panels) != 4 else 2
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # it is drawn as a box, and said nowhere else
        head = 0.45 + (0.2 if len(runs) > 1 else 0.0)
        height = rows * _INCHES[1] + head
        figure = figure_type(figsize=(max(columns, 1) * _INCHES[0], height), dpi=_DOTS_PER_INCH)
        figure.set_layout_engine("constrained", rect=(0.0, 0.0, 0.99, 1.0 - head / height), w_pad=0.08, h_pad=0.08)
        grid = figure.subplots(rows, columns, squeeze=False)
        axes = [each for row in grid for each in row]
        for axis, panel in zip(axes, panels, strict=False):
            _draw(axis, panel, runs)
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        _put_title(figure, title, runs, height)
        content = io.BytesIO()
        # Without the date and the release the same curves give the same bytes.
        figure.savefig(content, format=kind, facecolor="white", metadata={"Date": None} if kind == "svg" else None)
    write_bytes(path, content.getvalue(), is_private=False)


def _matplotlib() -> tuple[Live, Live]:
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("A picture of curves", "plot") from error

    def figure(**options: Any) -> Figure:
        made = Figure(**options)
        FigureCanvasAgg(made)  # no screen, and no window that pyplot would keep
        return made

    return mpl, figure


def _draw(axis: Live, panel: Panel, runs: list[str]) -> None:
    for curve in panel.curves:
        colour, dash = panel.look_of(curve, runs)
        look = {"color": colour, "linestyle": _LINES[dash]}
        drawn = thinned(curve)
        if panel.smooth_points > 1:
            axis.plot(*_gapped(drawn), **{**look, "alpha": 0.25, "linewidth": 1.0})
            drawn = thinned(smoothed(curve, panel.smooth_points))
        marker = "o" if _is_lonely(drawn) else None
        axis.plot(*_gapped(drawn), linewidth=1.6, marker=marker, markersize=3.5, solid_capstyle="round", **look)
        gaps = drawn.gaps
        if gaps:
            axis.plot(
                [x for x, _, _ in gaps], [height for _, _, height in gaps], "x", color=GAP_COLOUR, markersize=5,
                markeredgewidth=1.4, clip_on=False, label=f"{len(curve.gaps)} not finite",
            )  # fmt: skip
    for x, _ in panel.marks:
        axis.axvline(x, color="#9aa2ad", linewidth=0.8, linestyle=":")
    axis.set_title(panel.title, loc="left", fontsize=10, fontweight="bold", color=_INK)
    axis.set_xlabel(panel.x_name, fontsize=8)
    axis.set_ylabel(panel.y_name, fontsize=8)
    axis.margins(x=0.02)
    if panel.flat_range is not None:
        axis.set_ylim(*panel.flat_range)
    axis.ticklabel_format(axis="y", style="plain", useOffset=False)
    if panel.is_log_x:
        axis.set_xscale("log")
    axis.xaxis.set_major_formatter(_short_number)
    axis.yaxis.set_major_formatter(_short_number)
    _put_legend(axis, panel, runs)


def _put_legend(axis: Live, panel: Panel, runs: list[str]) -> None:
    """Say which line is which metric where there are several, and that something was not finite."""
    handles, labels = axis.get_legend_handles_labels()
    first_of = {curve.name: curve for curve in reversed(panel.curves)}
    lines: list[tuple[Live, str]] = []
    for name, label in panel.labels.items():
        colour, dash = panel.look_of(first_of[name], runs)
        ink = colour if len(runs) < 2 else _PALE_INK  # of several runs each has its own
        lines.append((axis.plot([], [], color=ink, linestyle=_LINES[dash])[0], label))
    shown = [*(lines if len(lines) > 1 else []), *list(zip(handles, labels, strict=True))[:1]]
    if shown:
        made = axis.legend([line for line, _ in shown], [str(text) for _, text in shown], fontsize=7, frameon=False)
        made.set_zorder(5)


def _put_title(figure: Live, title: str, runs: list[str], height: float) -> None:
    figure.text(0.012, 1 - 0.14 / height, title, fontsize=13, fontweight="bold", va="top", ha="left")
    if len(runs) < 2:
        return
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour_of(k), linewidth=2.2) for k, run in enumerate(runs)]
    made = figure.legend(
        handles, [label_of(run) or " " for run in runs], loc="upper left", bbox_to_anchor=(0.006, 1 - 0.42 / height),
        ncols=min(len(runs), 6), frameon=False, fontsize=9, borderaxespad=0.0,
    )  # fmt: skip
    made.set_in_layout(False)


def _gapped(curve: Curve) -> tuple[list[float], list[float]]:
    """Return what is drawn: NaN breaks a line, and infinity does too."""
    finite = [value if value - value == 0 else float("nan") for value in curve.y]
    return list(curve.x), finite


def _is_lonely(curve: Curve) -> bool:
    """Say whether a curve would be invisible as a line, or has so few points that each should be seen."""
    return len(curve) - len(curve.gaps) < 12


def _short_number(value: float, _position: int | None = None) -> str:
    """Return a number of an axis with few letters: 20k, 1.5M, 0.004."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / {'G': 1e9, 'M': 1e6, 'k': 1e3}[letter]:.4g}{letter}"
    return f"{value:.4g}"
