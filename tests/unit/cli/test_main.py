"""The top of the command: each kind of error has its code."""

from __future__ import annotations

import pytest

from hookloop.cli.main import run
from hookloop.errors import CheckpointWriteError, DamagedCheckpointError, NonFiniteError, RunLockedError


def test_a_run_in_use_exits_with_75_and_says_by_whom(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def recipes() -> None:
        raise RunLockedError("The run folder runs/one is in use by process 12.")

    monkeypatch.setattr("hookloop.cli.recipes.recipes", recipes)

    assert run(["recipes"]) == 75
    assert capsys.readouterr().err == "error: The run folder runs/one is in use by process 12.\n"


@pytest.mark.parametrize(
    "error",
    [CheckpointWriteError("The disk is full.", 28), DamagedCheckpointError("It is cut off."), NonFiniteError("NaN.")],
    ids=lambda error: type(error).__name__,
)
def test_a_run_that_cannot_save_or_go_on_exits_with_4_and_one_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("hookloop.cli.main.app", app)

    assert run(["recipes"]) == 4
    assert capsys.readouterr().err == f"error: {error}\n"
