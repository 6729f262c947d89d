from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hookloop.errors import ReplayError, UnknownNameError
from hookloop.replays import Replay, ReplayFolder, replay_page
from hookloop.replays.pictures import pictures_of
from hookloop.replays.text import harmless, step_line, step_screen, summary
from tests.unit.replays.episodes import episode


def folder_with(path: Path, *returns: float, **options: Any) -> ReplayFolder:
    folder = ReplayFolder(path, **options)
    for number, value in enumerate(returns):
        folder.save((number, "eval"), episode(**{"return": value}))
    return folder


def test_replays_are_found_by_words_places_and_names(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 3.0, 9.0, -1.0, 9.0)
    names = [kept.name for kept in folder.all()]

    assert names[0] == "000000000000-eval"
    assert folder.find("best").stem == names[3]  # of equals the newest
    assert folder.find("worst").stem == names[2]
    assert folder.find("latest").stem == names[3]
    assert folder.find("1").stem == names[0]
    assert folder.find(names[1]).stem == names[1]


def test_a_replay_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"no replays in .*; 'hookloop eval RUN --record 1' records one"):
        ReplayFolder(tmp_path / "none").find("best")
    folder = folder_with(tmp_path, 1.0)
    with pytest.raises(UnknownNameError, match="Did you mean 'best'"):
        folder.find("bst")
    with pytest.raises(ReplayError, match="counted from 1; got 2"):
        folder.find("2")


def test_a_damaged_replay_is_listed_and_passed_over(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, 1.0, 2.0)
    best = folder.find("best")
    best.write_bytes(best.read_bytes()[:30])

    assert [bool(kept.fault) for kept in folder.all()] == [False, True]
    assert folder.find("best") != best
    assert folder.find("latest") != best


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, *range(7), keep=3)

    assert [kept.return_ for kept in folder.all()] == [4, 5, 6]


def test_a_name_leads_nowhere(tmp_path: Path) -> None:
    path = ReplayFolder(tmp_path / "replays").save((1, "../../../evil", "", "a b\n"), episode())

    assert path.parent == tmp_path / "replays"
    assert path.name == "000000000001-_evil-_-a_b_.replay"


def test_a_step_is_a_line_and_a_screen() -> None:
    replay = episode(boards=True, env_steps=1000)

    assert summary(replay) == "Counting-v0, after 1000 steps of training, return 10, 5 steps, terminated"
    assert step_line(replay, 2) == "step=3 action=0 reward=2 return=3 value=20 p=0.75"
    screen = step_screen(replay, 2)
    assert "| 2|" in screen
    assert any(line.startswith(">   0 ██████ ") for line in screen)


def test_without_a_board_the_observation_is_shown() -> None:
    assert "observations: 3 -3" in step_screen(episode(), 3)


def test_a_terminal_is_shown_colours_and_obeys_nothing_else() -> None:
    assert harmless("\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m"
    assert harmless("\x1b]0;title\x07\x1b[2Jx\x9b1m\n") == "?]0;title??[2Jx?1m\n"


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_page_holds_the_episode_and_asks_nobody_for_anything() -> None:
    page = replay_page(episode(frames=True))

    data = data_of(page)
    assert (data["steps"], data["rewards"], data["values"][1]) == (5, [0, 1, 2, 3, 4], 10)
    assert len(data["pictures"]) == 5
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", page)
    assert "http" not in re.sub(r"http-equiv", "", page)


def test_what_is_in_a_replay_cannot_leave_its_place_in_the_page() -> None:
    evil = "</script><script>alert(1)</script><h1>__DATA__"

    page = replay_page(episode(environment=evil))

    assert "<script>alert" not in page
    assert data_of(page)["about"]["environment"] == evil


def test_numbers_that_are_not_finite_are_null_in_a_page() -> None:
    replay = Replay({}, {"rewards": np.array([1.0, np.nan, np.inf])})

    assert data_of(replay_page(replay))["rewards"] == [1.0, None, None]


def test_a_long_episode_shows_fewer_pictures() -> None:
    frames = np.random.default_rng(0).integers(0, 255, (40, 20, 20, 3), dtype=np.uint8)

    pictures, stride = pictures_of(frames, most_bytes=20_000)

    assert stride > 1
    assert len(pictures) == -(-40 // stride)
