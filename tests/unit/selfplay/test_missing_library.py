"""Without OpenSpiel, settings can be read, and a game says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hookloop.errors import MissingExtraError
from hookloop.selfplay.library import load_game


def test_a_game_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)

    with pytest.raises(MissingExtraError, match=r"hookloop\[games\]"):
        load_game("connect_four")


def test_settings_of_self_play_are_read_without_torch_and_games() -> None:
    program = "import sys; from hookloop.recipes.selfplay import connect4; connect4(); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert not {"torch", "numpy", "pyspiel"} & set(loaded)
