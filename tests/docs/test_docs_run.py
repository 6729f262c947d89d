"""Every example of the documentation runs as written and prints what the page says."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.doc_pages import PAGES, ROOT, Block, anchors_of, blocks_of, links_of, name_of, prose_of, python_blocks

ALL_BLOCKS = [block for page in PAGES for block in blocks_of(page)]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("command_output", ROOT / "tools" / "command_output.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["command_output"] = module  # where its dataclasses look for the names in their annotations
    spec.loader.exec_module(module)
    return module


def console_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that show commands."""
    return [block for block in blocks_of(page) if block.language == "console"]


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=name_of)
def test_python_blocks_run_in_order_and_print_what_stands_below_them(page: Path, tmp_path: Path) -> None:
    script = [sys.executable, "-W", "error", str(Path(__file__).parent / "doc_pages.py"), str(page)]

    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    printed = {int(line): text for line, text in json.loads(done.stdout).items()}
    expected = {
        block.follows: block for block in blocks_of(page) if block.language == "text" and block.follows in printed
    }
    for line, text in printed.items():
        shown = expected[line].text if line in expected else ""
        assert _trimmed(text) == _trimmed(shown), f"{name_of(page)}:{line} prints something else than the page shows"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page in PAGES if console_blocks(page)], ids=name_of)
def test_commands_run_in_order_and_print_what_stands_below_them(page: Path, tmp_path: Path, tool: ModuleType) -> None:
    shown = [(block, command) for block in console_blocks(page) for command in tool.commands_of(block.text)]
    following = [command.text for _, command in shown[1:]] + [""]

    outcomes = tool.run_commands([command for _, command in shown], tmp_path)

    for (block, command), outcome, next_command in zip(shown, outcomes, following, strict=True):
        where = f"{block.place} {command.text}"
        if next_command != tool.SHOWS_EXIT_CODE:  # a page that shows the exit code of a command may show a failure
            assert outcome.exit_code == 0, f"{where}\n{outcome.printed}"
        if not block.note.startswith("varies:") or command.text == tool.SHOWS_EXIT_CODE:
            assert _trimmed(outcome.printed) == _trimmed(command.shown), where


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in links_of(page):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{name_of(page)} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors_of(there), f"{name_of(page)} links to {target}; {sorted(anchors_of(there))}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(page: Path) -> None:
    cells_above: int | None = None
    for line in prose_of(page).splitlines():
        cells = len(re.split(r"(?<!\\)\|", line)) if line.startswith("|") else None
        assert cells_above in (None, cells) or cells is None, f"{name_of(page)}: {line}"
        cells_above = cells


def test_a_block_that_is_not_run_or_not_compared_gives_its_reason() -> None:
    for block in ALL_BLOCKS:
        kind, _, reason = block.note.partition(": ")

        assert not block.note or (kind in ("no-run", "varies") and reason), f"{block.place} says {block.note!r}"


def test_every_block_says_its_language() -> None:
    unnamed = [block.place for block in ALL_BLOCKS if not block.language]

    assert unnamed == []


@pytest.mark.parametrize("lister", [ROOT / "README.md", ROOT / "docs" / "index.md"], ids=name_of)
def test_every_page_is_listed(lister: Path) -> None:
    listed = {(lister.parent / target.partition("#")[0]).resolve() for target in links_of(lister)}

    assert [name_of(page) for page in PAGES[1:] if page != lister and page not in listed] == []


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]
