"""The documentation as data: its pages, their fenced blocks, links and headings.

Run as a script with a page's path, this executes the page's python blocks in order, in one namespace, and prints
what each of them printed, as JSON.
"""

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"```(?P<language>\w*)(?: (?P<note>.*))?")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    """The line of the page on which the block's text begins, counted from 1."""
    language: str
    note: str
    """What stands on the fence line after the language, such as ``no-run: needs a GPU``."""
    text: str
    follows: int | None
    """The line of the block directly before this one, with nothing but blank lines between."""

    @property
    def place(self) -> str:
        """Where to look."""
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    """Return a page's path as people write it."""
    return str(page.resolve().relative_to(ROOT))


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    previous: int | None = None
    at = 0
    while at < len(lines):
        fence = _FENCE.fullmatch(lines[at])
        if fence is None:
            if lines[at].strip():
                previous = None
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i] == "```")
        text = "".join(f"{line}\n" for line in lines[at + 1 : end])
        found.append(Block(name_of(page), at + 2, fence["language"], fence["note"] or "", text, previous))
        previous = at + 2
        at = end + 1
    return found


def python_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that must run."""
    return [block for block in blocks_of(page) if block.language == "python" and not block.note]


def prose_of(page: Path) -> str:
    """Return the text of a page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links_of(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links, code left out."""
    for match in _LINK.finditer(prose_of(page)):
        yield match["target"]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that the headings of a page get."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def table_under(page: Path, heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading, without its head, cell by cell."""
    text = page.read_text(encoding="utf-8")
    below = text.partition(f"\n{heading}\n")[2]
    assert below, f"{name_of(page)} has no heading {heading!r}"
    rows: list[list[str]] = []
    for line in below.splitlines():
        if line.startswith("| "):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif rows:
            break
    return rows[2:]


def _run(page: Path) -> dict[int, str]:
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed: dict[int, str] = {}
    for block in python_blocks(page):
        # Empty lines in front, so that a traceback names the line of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, namespace)  # the page is ours, and running it is the purpose
        printed[block.line] = output.getvalue()
    return printed


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_run(Path(sys.argv[1]))))
