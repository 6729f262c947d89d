"""Panels and bars as the plain data that plotly draws in a browser."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hookloop.charts.curve import Curve, Panel, label_of, smoothed, thinned
from hookloop.charts.palette import GAP_COLOUR, colour_of

Figure = dict[str, Any]

CHART_HEIGHT = 270
_BAR_HEIGHT = 26
_FEW_POINTS = 12


def figure_of(panel: Panel, runs: Sequence[str]) -> Figure:
    """Return a panel as plotly takes it; the place of a run among ``runs`` decides its colour."""
    traces: list[Figure] = []
    for curve in panel.curves:
        traces += _traces(curve, panel, runs)
    layout = {
        "height": CHART_HEIGHT,
        "margin": {"l": 56, "r": 12, "t": 8, "b": 44},
        "hovermode": "x unified",
        "showlegend": len(panel.names) > 1,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {"title": _title(panel.x_name), "zeroline": False},
        "yaxis": {"title": _title(panel.y_name), "zeroline": False, "nticks": 6, "automargin": True,
                  "range": panel.flat_range},
        "shapes": [
            {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1,
             "line": {"width": 1, "dash": "dot", "color": "#9aa2ad"}}
            for x, _ in panel.marks
        ],
        "annotations": [
            {"x": x, "y": 1, "yref": "paper", "yanchor": "top", "xanchor": "left", "text": as_plotly(text),
             "showarrow": False, "font": {"size": 10}}
            for text, x in {text: x for x, text in reversed(panel.marks)}.items()  # where it happened first
        ],
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def bars_of(values: Mapping[str, float], unit: str) -> Figure:
    """Return lying bars, in the order of the mapping from the top."""
    names = [as_plotly(label_of(name)) for name in values]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": list(values.values()),
        "marker": {"color": colour_of(0)},
        "hovertemplate": f"%{{y}}: %{{x:.4g}} {as_plotly(unit)}<extra></extra>",
    }
    layout = {
        "height": 70 + _BAR_HEIGHT * len(names),
        "margin": {"l": 10, "r": 12, "t": 8, "b": 44},
        "xaxis": {"title": _title(unit), "zeroline": False, "rangemode": "tozero"},
        # As names even where they look like numbers or dates.
        "yaxis": {"type": "category", "autorange": "reversed", "automargin": True},
        "bargap": 0.35,
    }
    return {"data": [trace], "layout": layout}


def as_plotly(text: str) -> str:
    """Return a text such that plotly, which knows a few tags, shows it letter by letter."""
    return escape(text, quote=False)


def _title(text: str) -> Figure:
    return {"text": as_plotly(text), "standoff": 6, "font": {"size": 11}}


def _traces(curve: Curve, panel: Panel, runs: Sequence[str]) -> list[Figure]:
    drawn = thinned(curve)
    colour, dash = panel.look_of(curve, runs)
    look = {"color": colour, "dash": dash, "width": 2}
    run = label_of(curve.run) if len(runs) > 1 else ""
    label = " ".join(part for part in (run, panel.labels[curve.name]) if part)
    shared: Figure = {
        "type": "scatter",
        "name": as_plotly(label),
        "legendgroup": as_plotly(curve.name),
        "meta": {"run": curve.run},
        "line": look,
        "hovertemplate": "%{y:.5g}",
        "connectgaps": False,
    }
    traces: list[Figure] = []
    if panel.smooth_points > 1:
        pale = {"mode": "lines", "opacity": 0.25, "hoverinfo": "skip", "hovertemplate": None, "showlegend": False}
        traces.append({**shared, **_points(drawn), **pale, "line": {**look, "width": 1}})
        drawn = thinned(smoothed(curve, panel.smooth_points))
    mode = "lines+markers" if len(drawn) - len(drawn.gaps) < _FEW_POINTS else "lines"
    traces.append({**shared, **_points(drawn), "mode": mode, "marker": {"size": 5, "color": look["color"]}})
    gaps = drawn.gaps
    if gaps:
        traces.append(
            {
                **shared,
                "name": as_plotly(f"{label} not finite"),
                "x": [x for x, _, _ in gaps],
                "y": [height for _, _, height in gaps],
                "text": [str(value) for _, value, _ in gaps],
                "mode": "markers",
                "marker": {"symbol": "x", "size": 8, "color": GAP_COLOUR},
                "hovertemplate": "%{text}",
                "showlegend": False,
            }
        )
    return traces


def _points(curve: Curve) -> Figure:
    return {"x": list(curve.x), "y": [value if math.isfinite(value) else None for value in curve.y]}
