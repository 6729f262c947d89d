"""Files and functions stay small: a long one means a word is missing from the vocabulary."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCES = sorted((Path(__file__).parents[2] / "src" / "hookloop").rglob("*.py"))
MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 40


def test_no_file_is_longer_than_400_lines() -> None:
    long = {path.name: lines for path in SOURCES if (lines := len(path.read_text().splitlines())) > MOST_FILE_LINES}

    assert long == {}


def test_no_function_is_longer_than_40_lines() -> None:
    long: dict[str, int] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                if lines > MOST_FUNCTION_LINES:
                    long[f"{path.name}:{node.name}"] = lines

    assert long == {}


def test_exceptions_are_caught_wholesale_only_by_the_dispatcher_the_tracker_queue_and_the_command_line() -> None:
    allowed = {"emitters.py", "switchboard.py", "background.py", "replay.py", "main.py"}
    catching = {path.name for path in SOURCES if "except Exception" in path.read_text()}

    assert catching <= allowed
