"""Pages and pictures as a person sees them: in a real browser, without a network."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hookloop.cli.main import run
from hookloop.core.costs import HookCost
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.stats import StatsStore
from tests.browser import running_browser, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

EPOCHS = 30
LONG_EPOCHS = 9_000
HOSTILE = "<script>window.isHarmed=1</script><img src=x onerror=window.isHarmed=1>"
IS_DRAWN = "html[data-is-drawn=true]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with the same metrics, one of which met NaN and has hostile names, and a long one with one peak."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "calm", EPOCHS, {"return/mean": lambda k: k * 2.0, "losses/ppo/value": lambda k: 1 / k})
    wild = {"return/mean": lambda k: math.nan if k == 7 else float(k), HOSTILE: float, f"{HOSTILE}/x": float}
    make_run(folder / "wild", EPOCHS, wild, said=HOSTILE)
    make_run(folder / "long", LONG_EPOCHS, {"return/mean": lambda k: 1e6 if k == 4321 else math.sin(k)})
    return folder


def make_run(path: Path, epochs: int, metrics: dict[str, Callable[[int], float]], *, said: str = "because") -> None:
    folder, config = RunFolder(path), RunConfig("cartpole", 0, 1, {"env": {"id": "CartPole-v1"}, "note": said})
    folder.write_config(config)
    with StatsStore(folder.stats_file, run_id=config.run_id) as store:
        store.begin_attempt(1, {"epochs": 0}, name=path.name, recipe=config.recipe, seed=0, versions={said: said})
        clocks: dict[str, float] = {}
        for epoch in range(1, epochs + 1):
            clocks = {"epochs": epoch, "env_steps": 100 * epoch, "optimizer_steps": epoch, "seconds": 0.1 * epoch}
            values = {name: value(epoch) for name, value in metrics.items()}
            store.log_metrics([{"hook": "", "event": "epoch_end", "clocks": clocks, "values": values}])
            store.log_epoch(clocks)
        if said == HOSTILE:
            store.log_evaluation(HOSTILE, {HOSTILE: 1.0}, clocks, episodes=3)
        store.log_event(said, said, said, clocks)
        store.log_hook_costs([HookCost(said, "epoch_end", 3, 3000, 2000, 3)])
        store.end_attempt("completed")


def written(runs: Path, file: Path, *words: str) -> Path:
    assert run([*words, "--to", str(file), "--runs-dir", str(runs)]) == 0
    return file


def chart(page: Page, title: str, ask: str) -> object:
    """Ask something of the chart under a title; ``chart`` is what plotly made of it."""
    return page.evaluate(
        "([title, ask]) => {"
        " const figure = [...document.querySelectorAll('figure')].find(f => f.firstChild.textContent === title);"
        " const chart = figure.querySelector('.chart');"
        " return ({ points: () => chart.data[0].x.length, peak: () => Math.max(...chart.data[0].y),"
        "   colours: () => chart.data.map(t => t.line.color), visible: () => chart.data.map(t => t.visible !== false),"
        "   gaps: () => chart.data[0].y.filter(y => y === null).length, marks: () => chart.data[1].x,"
        "   range: () => chart.layout.xaxis.range, paper: () => chart.layout.paper_bgcolor })[ask](); }",
        [title, ask],
    )


def test_a_report_opens_without_a_complaint_and_without_a_request(runs: Path, browser: Browser, tmp_path: Path) -> None:
    page = written(runs, tmp_path / "report.html", "report", "calm")

    with visiting(browser, page) as visit:
        visit.page.wait_for_selector(IS_DRAWN)

        assert visit.complaints == []
        assert visit.requests == [page.as_uri()]
        assert chart(visit.page, "return", "points") == EPOCHS
        heads = visit.page.locator("h2").all_inner_texts()
    assert heads == [
        "In short", "Curves", "Evaluations", "Checkpoints", "Hooks", "Attempts", "Events", "Configuration",
        "Environment",
    ]  # fmt: skip


def test_nothing_in_the_data_is_executed_and_all_of_it_is_shown(runs: Path, browser: Browser, tmp_path: Path) -> None:
    pages = [
        written(runs, tmp_path / "report.html", "report", "wild"),
        written(runs, tmp_path / "plot.html", "plot", "wild", "calm", "--key", HOSTILE),
    ]

    for page in pages:
        with visiting(browser, page) as visit:
            visit.page.wait_for_selector(IS_DRAWN)
            visit.page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true; })")
            visit.wait_until("[...document.querySelectorAll('.chart')].every(each => each.data)")

            assert visit.page.evaluate("window.isHarmed") is None
            assert visit.page.locator("img").count() == 0
            assert HOSTILE in visit.page.locator("main").inner_text()
            assert visit.complaints == []
            assert len(visit.requests) == 1


def test_a_script_that_is_smuggled_into_the_page_is_stopped_by_its_policy(
    runs: Path, browser: Browser, tmp_path: Path
) -> None:
    page = written(runs, tmp_path / "report.html", "report", "calm")
    smuggled = "<script>window.isHarmed=1</script><img src='https://example.org/x.png'>"
    page.write_text(page.read_text().replace("<main>", f"<main>{smuggled}"))

    with visiting(browser, page) as visit:
        visit.page.wait_for_selector(IS_DRAWN)

        assert visit.page.evaluate("window.isHarmed") is None
        assert all("Content Security Policy" in said for said in visit.complaints)
        assert len(visit.complaints) == 2


def test_a_peak_of_a_long_run_is_in_the_page(runs: Path, browser: Browser, tmp_path: Path) -> None:
    page = written(runs, tmp_path / "long.html", "plot", "long", "--key", "return/mean")

    with visiting(browser, page) as visit:
        visit.page.wait_for_selector(IS_DRAWN)

        assert chart(visit.page, "return/mean", "peak") == 1e6
        points = chart(visit.page, "return/mean", "points")
    assert isinstance(points, int)
    assert points < LONG_EPOCHS / 2


def test_what_is_not_finite_is_a_gap_with_a_mark(runs: Path, browser: Browser, tmp_path: Path) -> None:
    page = written(runs, tmp_path / "wild.html", "plot", "wild", "--key", "return/mean", "--x", "epoch")

    with visiting(browser, page) as visit:
        visit.page.wait_for_selector(IS_DRAWN)

        assert chart(visit.page, "return/mean", "gaps") == 1
        assert chart(visit.page, "return/mean", "marks") == [7]


def test_a_run_has_one_colour_and_can_be_hidden_in_every_panel(runs: Path, browser: Browser, tmp_path: Path) -> None:
    page = written(runs, tmp_path / "both.html", "plot", "calm", "wild")

    with visiting(browser, page) as visit:
        visit.page.wait_for_selector(IS_DRAWN)
        colours = chart(visit.page, "return", "colours")
        assert isinstance(colours, list)
        assert colours[:2] == chart(visit.page, "throughput", "colours")
        assert len(set(colours)) == 2

        visit.page.get_by_role("button", name="calm").click()

        # The second run has a line, the mark of its gap, and its evaluation.
        assert chart(visit.page, "return", "visible") == [False, True, True, True]
        assert chart(visit.page, "throughput", "visible") == [False, True]
        assert visit.complaints == []


def test_pointing_at_a_curve_tells_its_value_and_zooming_one_chart_zooms_all(
    runs: Path, browser: Browser, tmp_path: Path
) -> None:
    page = written(runs, tmp_path / "calm.html", "plot", "calm")

    with visiting(browser, page) as visit:
        visit.page.wait_for_selector(IS_DRAWN)
        box = visit.page.locator("figure", has_text="return").locator(".nsewdrag").bounding_box()
        assert box is not None
        left, middle, right = (box["x"] + box["width"] * share for share in (0.25, 0.5, 0.75))
        height = box["y"] + box["height"] / 2

        visit.page.mouse.move(middle, height)
        visit.page.wait_for_selector(".hoverlayer .legend, .hoverlayer .hovertext")
        visit.page.mouse.move(left, height)
        visit.page.mouse.down()
        visit.page.mouse.move(right, height, steps=8)
        visit.page.mouse.up()
        visit.wait_until(
            "[...document.querySelectorAll('.chart')].map(chart => chart.layout.xaxis.range)"
            ".every(([low, high]) => high - low < 2000)"
        )

        assert chart(visit.page, "return", "range") == chart(visit.page, "throughput", "range")
        assert visit.complaints == []


def test_the_configuration_unfolds_and_can_be_searched(runs: Path, browser: Browser, tmp_path: Path) -> None:
    page = written(runs, tmp_path / "report.html", "report", "calm")

    with visiting(browser, page) as visit:
        visit.page.wait_for_selector(IS_DRAWN)
        setting = visit.page.get_by_role("cell", name="env.id", exact=True)
        assert not setting.is_visible()

        visit.page.get_by_text("all settings").click()
        assert setting.is_visible()
        visit.page.get_by_role("searchbox").fill("cartpole-V1")
        assert setting.is_visible()
        visit.page.get_by_role("searchbox").fill("no such thing")
        assert not setting.is_visible()


@pytest.mark.parametrize(("scheme", "paper"), [("light", "#ffffff"), ("dark", "#1c2026")])
def test_a_page_fits_a_phone_and_keeps_to_the_colours_of_its_reader(
    scheme: str, paper: str, runs: Path, browser: Browser, tmp_path: Path
) -> None:
    page = written(runs, tmp_path / "report.html", "report", "calm")

    with visiting(browser, page, width=390, height=800, scheme=scheme) as visit:  # pyright: ignore[reportArgumentType]
        visit.page.wait_for_selector(IS_DRAWN)

        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert chart(visit.page, "return", "paper") == paper
        visit.page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
        visit.wait_until(f"document.querySelector('.chart').layout.paper_bgcolor !== '{paper}'")


def test_a_page_is_printed_on_white(runs: Path, browser: Browser, tmp_path: Path) -> None:
    page = written(runs, tmp_path / "report.html", "report", "calm")

    with visiting(browser, page, scheme="dark") as visit:
        visit.page.wait_for_selector(IS_DRAWN)
        visit.page.emulate_media(media="print")

        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert visit.page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_opens_and_shows_something(ending: str, runs: Path, browser: Browser, tmp_path: Path) -> None:
    picture = written(runs, tmp_path / f"curves.{ending}", "plot", "calm", "wild", "--smooth", "5")
    viewer = tmp_path / "viewer.html"
    viewer.write_text(f"<!doctype html><link rel='icon' href='data:,'><img src='{picture.name}' width=600>")

    with visiting(browser, viewer) as visit:
        visit.wait_until("document.images[0].complete")
        assert visit.page.evaluate("document.images[0].naturalWidth") > 800
        shot = visit.page.locator("img").screenshot(path=tmp_path / "shot.png")
        assert visit.complaints == []

    assert len(shot) > 5_000
    assert variance(tmp_path / "shot.png") > 100


def variance(png: Path) -> float:
    """Return how much the pixels of a picture differ, of 255 squared."""
    from matplotlib.image import imread

    return float((imread(png)[..., :3] * 255).var())


def test_the_data_of_a_page_can_be_read_by_programs(runs: Path, tmp_path: Path) -> None:
    page = written(runs, tmp_path / "calm.html", "plot", "calm", "--key", "losses/ppo/value").read_text()

    text = page.partition('id="figures">')[2].partition("</script>")[0]
    assert json.loads(text)[0]["data"][0]["y"] == [1 / k for k in range(1, EPOCHS + 1)]
