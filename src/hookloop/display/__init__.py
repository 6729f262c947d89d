"""Showing a run: a panel on a terminal, one line elsewhere, JSON for programs. Knows nothing of hooks or databases."""

from hookloop.display.line import json_line, plain_line
from hookloop.display.live import LiveDisplay, can_draw
from hookloop.display.pace import Pace
from hookloop.display.panel import draw
from hookloop.display.sparkline import History, sparkline
from hookloop.display.training import TrainingDisplay
from hookloop.display.view import Block, Curve, Evaluation, Failure, RunView, SavedCheckpoint, TrackerHealth

__all__ = [
    "Block",
    "Curve",
    "Evaluation",
    "Failure",
    "History",
    "LiveDisplay",
    "Pace",
    "RunView",
    "SavedCheckpoint",
    "TrackerHealth",
    "TrainingDisplay",
    "can_draw",
    "draw",
    "json_line",
    "plain_line",
    "sparkline",
]
