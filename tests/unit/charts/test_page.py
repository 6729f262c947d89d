from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from hookloop.charts import Bars, Curve, Facts, Folded, Page, Panel, Prose, Section, Table
from hookloop.errors import MissingExtraError

HOSTILE = "</script><script>alert('&\"')</script>"


def hostile_page() -> Page:
    panel = Panel(HOSTILE, [Curve(HOSTILE, [0.0], [1.0], HOSTILE), Curve(HOSTILE, [0.0], [1.0], "other")])
    table = Table([HOSTILE], [[HOSTILE]], frozenset({HOSTILE}), is_searchable=True)
    parts = [Facts({HOSTILE: HOSTILE}), Prose(HOSTILE), panel, Bars({HOSTILE: 1.0}, HOSTILE), Folded(HOSTILE, [table])]
    return Page(HOSTILE, [Section(HOSTILE, parts)], HOSTILE)


def scripts_of(html: str) -> list[str]:
    return re.findall(r"<script>(.*?)</script>", html, re.DOTALL)


def test_no_text_of_the_data_becomes_a_tag() -> None:
    html = hostile_page().html()

    assert HOSTILE not in html
    assert html.count("<script") - sum(script.count("<script") for script in scripts_of(html)) == 4
    assert "&lt;/script&gt;&lt;script&gt;alert(" in html


def test_the_data_of_the_charts_is_strict_json_that_no_text_ends_early() -> None:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', hostile_page().html(), re.DOTALL)

    assert found is not None
    curves, bars = json.loads(found[1])
    assert curves["data"][0]["meta"]["run"] == HOSTILE
    assert bars["data"][0]["x"] == [1.0]


def test_the_policy_allows_the_two_scripts_of_the_page_and_no_address() -> None:
    html = hostile_page().html()

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    hashes = [f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts_of(html)]
    assert policy[1].startswith(f"default-src 'none'; script-src {' '.join(hashes)};")
    outside = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)="(?!data:)', outside) == []


def test_panels_that_follow_each_other_stand_in_one_grid() -> None:
    panel = Panel("loss", [Curve("loss", [0.0], [1.0])])

    html = Page("page", [Section("curves", [panel, panel, Prose("and"), panel])]).html()

    assert html.count('<div class="grid">') == 2


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    Page("page", [Section("words", [Prose("hello")])]).write(tmp_path / "page.html")

    assert (tmp_path / "page.html").read_text().endswith("</html>\n")
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_without_plotly_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'hookloop\[plot\]'"):
        hostile_page().html()
