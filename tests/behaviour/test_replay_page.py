"""The page of a replay, opened in a real browser and stepped through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookloop.replays import replay_page
from tests.unit.replays.episodes import episode, game
from tests.waiting import PATIENCE_SECONDS

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install 'hookloop[dev]'"
    )
    if not CHROMIUM.exists():
        pytest.skip("there is no chromium on this machine: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=["--no-sandbox"], timeout=1000 * PATIENCE_SECONDS
        )
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Open pages; afterwards no request but for the pages themselves was made, and nothing was complained about."""
    requests: list[str] = []
    complaints: list[str] = []
    contexts: list[Any] = []

    def open_page(replay: Any) -> Any:
        file = tmp_path / "episode.html"
        file.write_text(replay_page(replay), encoding="utf-8")
        contexts.append(browser.new_context(viewport={"width": 900, "height": 900}))
        contexts[-1].set_default_timeout(1000 * PATIENCE_SECONDS)
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in requests if not url.startswith(("file://", "data:"))] == []
    assert len([url for url in requests if url.startswith("file://")]) == len(contexts)
    assert complaints == []


def ink(page: Any, canvas: str) -> int:
    """Return how many points of a canvas are drawn on."""
    return page.evaluate(
        "(id) => { const c = document.getElementById(id);"
        " const points = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " return points.filter((v, i) => i % 4 === 3 && v).length }",
        canvas,
    )


def place(page: Any) -> str:
    return page.text_content("#place")


def test_a_page_is_stepped_forward_and_back(opened: Any) -> None:
    page = opened(episode(frames=True))
    first = page.get_attribute("#picture", "src")

    assert place(page) == "step 1 of 5"
    page.click("#next")
    page.keyboard.press("ArrowRight")
    assert place(page) == "step 3 of 5"
    assert "reward 2, return so far 3" in page.text_content("#facts")
    assert "value 20" in page.text_content("#facts")
    assert page.get_attribute("#picture", "src") != first
    assert page.evaluate("document.getElementById('picture').naturalWidth") == 8
    page.click("#back")
    assert place(page) == "step 2 of 5"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert place(page) == "step 1 of 5"
    page.click("#last")
    assert place(page) == "step 5 of 5"


def test_the_timeline_and_the_curves_lead_to_a_step(opened: Any) -> None:
    page = opened(episode(steps=101))

    page.fill("#timeline", "51")
    assert place(page) == "step 51 of 101"
    box = page.locator("#value-curve").bounding_box()
    page.locator("#value-curve").click(position={"x": box["width"] - 5, "y": 10})
    assert place(page) == "step 101 of 101"
    for canvas in ("reward-curve", "value-curve", "probability-curve"):
        assert ink(page, canvas) > 100


def test_the_chosen_action_and_the_probabilities_are_shown(opened: Any) -> None:
    page = opened(episode())

    page.click("#next")

    assert page.text_content(".choice.chosen").startswith("1")
    assert page.locator(".choice").count() == 2
    assert "0.750" in page.text_content(".choice.chosen")


def test_a_board_is_shown_as_it_was_drawn(opened: Any) -> None:
    page = opened(episode(boards=True))

    page.click("#next")

    assert page.text_content("#board") == "+--+\n| 1|\n+--+"


def test_it_plays_to_the_end_by_itself(opened: Any) -> None:
    page = opened(episode(steps=4))

    page.click("#play")
    page.locator("#place", has_text="step 4 of 4").wait_for()
    page.locator("#play", has_text="play").wait_for()


def test_an_episode_without_thoughts_shows_what_there_is(opened: Any) -> None:
    replay = episode(environment="</script><script>document.title='hacked'</script>")
    bare = type(replay)(replay.about, {"rewards": replay.arrays["rewards"]})

    page = opened(bare)

    assert page.is_hidden("#value-figure")
    assert page.is_hidden("#probability-figure")
    assert page.title() != "hacked"


def test_a_game_is_shown_square_by_square_with_the_last_move_and_its_moves(opened: Any) -> None:
    page = opened(game())

    page.click("#next")
    assert page.locator("#squares td").all_inner_texts() == ["X", "O", "·", "·", "·", "·", "·", "·", "·"]
    assert page.locator("#squares td.last").all_inner_texts() == ["O"]
    assert page.locator("#squares th").all_inner_texts()[1:4] == ["0", "1", "2"]
    page.check("#letters")
    assert page.locator("#squares td").all_inner_texts()[:3] == ["X", "O", "."]
    page.click("#moves button:nth-child(5)")
    assert place(page) == "step 5 of 5"
    assert page.locator("#squares td.last").get_attribute("class") == "seat0 last"
