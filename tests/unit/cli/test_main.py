"""The top of the command: each kind of error has its code."""

from __future__ import annotations

import pytest

from hookloop.cli.main import run
from hookloop.errors import RunLockedError


def test_a_run_in_use_exits_with_75_and_says_by_whom(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def recipes() -> None:
        raise RunLockedError("The run folder runs/one is in use by process 12.")

    monkeypatch.setattr("hookloop.cli.recipes.recipes", recipes)

    assert run(["recipes"]) == 75
    assert capsys.readouterr().err == "error: The run folder runs/one is in use by process 12.\n"
