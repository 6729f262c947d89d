"""Every example of the documentation runs as written and prints what the page says."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.doc_pages import PAGES, ROOT, Block, anchors_of, blocks_of, links_of, name_of, prose_of, python_blocks

ALL_BLOCKS = [block for page in PAGES for block in blocks_of(page)]
ENVIRONMENT = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
# `make train` says which command it runs, runs it, and does nothing else once everything is installed.
SAME_AS = {"make train": (".venv/bin/hookloop train\n", "hookloop train")}


def commands_of(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a block that can be run here, each with the output that is shown for it."""
    found: list[tuple[str, str]] = []
    for part in f"\n{block.text}".split("\n$ ")[1:]:
        command, _, shown = part.partition("\n")
        if command in SAME_AS:
            first_line, command = SAME_AS[command]
            assert shown.startswith(first_line), block.place
            shown = shown.removeprefix(first_line)
        if command.split()[0] == "hookloop":
            found.append((command, shown))
    return found


COMMANDS = [
    (block, command, shown)
    for block in ALL_BLOCKS
    if block.language in ("console", "bash")
    for command, shown in commands_of(block)
]


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


@pytest.mark.parametrize(
    ("block", "command", "shown"), COMMANDS, ids=[f"{block.place} {command}" for block, command, _ in COMMANDS]
)
def test_commands_succeed_and_print_what_the_page_shows(block: Block, command: str, shown: str, tmp_path: Path) -> None:
    words = shlex.split(command)

    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    if not block.note.startswith("varies:"):
        assert _trimmed(done.stdout) == _trimmed(shown), block.place


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
