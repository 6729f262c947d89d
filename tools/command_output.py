"""Run the commands that the pages show, and write what they print today into the pages.

``python tools/command_output.py docs/cli.md`` runs the commands of a page's console blocks, in order and in one new
folder, as a reader would, and replaces the output below each. Blocks whose fence says ``varies`` are run, since later
ones may build on them, and left as they are; with ``--varying`` they are replaced as well.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# Columns as wide as a page is, no colours, and one thread: what is printed is what stands in a file.
ENVIRONMENT = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "OMP_NUM_THREADS": "1"}
BLOCK = re.compile(r"^(```console(?: (?P<note>[^\n]*))?\n)(?P<text>.*?)(\n```)$", re.DOTALL | re.MULTILINE)

# What a reader types, and what is carried out in its place. A person waits a little before killing the run `demo`;
# if it has come to its end in the meantime, on a machine that is busy otherwise, it is begun once more.
DEMO = 'hookloop train cartpole --run demo checkpoints.schedule="every 5 epochs" --display off'
STAND_INS = {
    "make train": "echo .venv/bin/hookloop train; hookloop train",
    "kill -9 $!": (
        "for attempt in 1 2 3 4 5; do "
        "while kill -0 $! && ! ls -d runs/demo/checkpoints/step-* >/dev/null 2>&1; do sleep 0.1; done; "
        "kill -9 $!; killed=$?; wait $! 2>/dev/null; "
        f"test $killed = 0 && break; rm -r runs/demo; {DEMO} & done; (exit $killed)"
    ),
}
SHOWS_EXIT_CODE = "echo $?"
_MARK = "\x1e"


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a page, as it is shown."""

    text: str
    shown: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did."""

    printed: str
    exit_code: int


def commands_of(block: str) -> list[Command]:
    """Return the commands of a console block, each with the output that is shown for it."""
    parts = f"\n{block}".split("\n$ ")[1:]
    return [Command(text, shown) for text, _, shown in (part.partition("\n") for part in parts)]


def run_commands(commands: list[Command], folder: Path) -> list[Outcome]:
    """Run commands in one shell, in a folder; what they write to the error output is printed with the rest."""
    programs = folder / ".programs"
    programs.mkdir()
    for name, module in (("hookloop", "-m hookloop"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (programs / name).chmod(0o755)
    script = "".join(
        f"{{ {STAND_INS.get(command.text, command.text)}\n}} 2>&1\n"
        f"code=$?; printf '{_MARK}%s{_MARK}' $code; (exit $code)\n"
        for command in commands
    )
    environment = {**ENVIRONMENT, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
    )  # fmt: skip
    pieces = done.stdout.split(_MARK)
    return [Outcome(printed, int(code)) for printed, code in zip(pieces[:-1:2], pieces[1::2], strict=True)]


def refreshed(page: str, folder: Path, *, with_varying: bool = False) -> str:
    """Return a page with the output its commands print now."""
    commands = [command for block in BLOCK.finditer(page) for command in commands_of(block["text"])]
    outcomes = iter(run_commands(commands, folder))

    def rewritten(block: re.Match[str]) -> str:
        lines: list[str] = []
        for command in commands_of(block["text"]):
            outcome = next(outcomes)
            printed = "\n".join(line.rstrip() for line in outcome.printed.rstrip().split("\n"))
            lines.append(f"$ {command.text}\n{printed}".rstrip())
        is_kept = (block["note"] or "").startswith("varies:") and not with_varying
        return block[0] if is_kept else block[1] + "\n".join(lines) + block[4]

    return BLOCK.sub(rewritten, page)


def main() -> None:
    """Refresh the pages that are named."""
    parser = argparse.ArgumentParser(description="Write what commands print today into the pages that show them.")
    parser.add_argument("pages", type=Path, nargs="+")
    parser.add_argument("--varying", action="store_true", help="replace the output that differs from run to run, too")
    options = parser.parse_args()
    for page in options.pages:
        with tempfile.TemporaryDirectory() as folder:
            text = refreshed(page.read_text(encoding="utf-8"), Path(folder), with_varying=options.varying)
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
