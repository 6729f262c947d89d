"""A real browser for tests of pages: the machine's own chromium, without a screen and without a network."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Visit:
    """A page that was opened, and what it has said and asked for since."""

    page: Page
    complaints: list[str]
    """Errors and warnings on the console, and what was thrown and not caught."""
    requests: list[str]
    """Every address that was asked for, the page's own included."""

    def wait_until(self, expression: str) -> None:
        """Wait until an expression of JavaScript is true; playwright's own way needs a page that allows eval."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} seconds: {expression}"
            self.page.wait_for_timeout(50)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run a browser; skip the test where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("there is no chromium on this machine: apt-get install chromium")
    if find_spec("playwright") is None:
        pytest.skip("playwright is not installed: pip install 'hookloop[dev]'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        patience = 1000 * PATIENCE_SECONDS
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=patience)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visiting(
    browser: Browser,
    place: str | Path,
    *,
    width: int = 1200,
    height: int = 900,
    scheme: Literal["dark", "light"] = "light",
    is_offline: bool = True,
) -> Iterator[Visit]:
    """Open a file or an address in a window of its own."""
    window: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    context = browser.new_context(**window, offline=is_offline)
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    try:
        visit = Visit(context.new_page(), [], [])
        visit.page.on("console", lambda said: said.type in ("error", "warning") and visit.complaints.append(said.text))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.goto(place.resolve().as_uri() if isinstance(place, Path) else place)
        yield visit
    finally:
        context.close()
