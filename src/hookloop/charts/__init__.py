"""Charts of curves: pictures by matplotlib, pages by plotly that need no network. Both are the extra ``plot``."""

from hookloop.charts.curve import Curve, Panel, smoothed, thinned
from hookloop.charts.page import Bars, Facts, Folded, Page, Part, Prose, Section, Table
from hookloop.charts.picture import write_picture

__all__ = [
    "Bars",
    "Curve",
    "Facts",
    "Folded",
    "Page",
    "Panel",
    "Part",
    "Prose",
    "Section",
    "Table",
    "smoothed",
    "thinned",
    "write_picture",
]
