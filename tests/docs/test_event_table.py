"""The page of events says what the code does."""

import importlib.util
from types import ModuleType

import pytest

from hookloop import TrainingLoop
from hookloop.core import BUILT_IN_EVENTS
from hookloop.testing import ToyWorkload, TraceHook
from tests.docs.doc_pages import ROOT

PAGE = ROOT / "docs" / "events.md"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("event_table", ROOT / "tools" / "event_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_parts_are_up_to_date(tool: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert tool.refreshed(page) == page, f"docs/events.md is out of date; refresh it with: {tool.REFRESH}"


def test_the_page_says_how_to_refresh_it(tool: ModuleType) -> None:
    assert page_prose().count(tool.REFRESH) >= 1


def test_the_table_names_every_event_and_every_alias() -> None:
    page = PAGE.read_text(encoding="utf-8")

    for event in BUILT_IN_EVENTS:
        for name in (event.name, *event.aliases):
            assert f"`{name}`" in page


def test_the_picture_of_one_epoch_is_a_recorded_run() -> None:
    trace = TraceHook()
    TrainingLoop(ToyWorkload(1, steps_per_epoch=2, minibatch_size=4), [trace], watch_signals=False).run()

    picture = PAGE.read_text(encoding="utf-8").partition("<!-- begin picture of one epoch")[2].partition("```text")[2]
    head, *lines = picture.partition("```")[0].strip().splitlines()

    clocks = head.split()[1:]
    assert [line.split()[0] for line in lines] == trace.events
    assert [line.split()[1:] for line in lines] == [
        [str(each.clocks[clock]) for clock in clocks] for each in trace.fired
    ]


def page_prose() -> str:
    """Return the page without its comments."""
    kept = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if not line.startswith("<!--")]
    return "\n".join(kept)
