"""Write what commands print today into the pages that show them.

``python tools/command_output.py docs/cli.md`` runs each ``$ hookloop ...`` of a page's console blocks and replaces the
output below it. Blocks whose fence says ``varies`` are left alone.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
BLOCK = re.compile(r"(```console\n)(.*?)(\n```)", re.DOTALL)


def refreshed(block: str) -> str:
    """Return a console block with the output its commands print now."""
    parts: list[str] = []
    for part in f"\n{block}".split("\n$ ")[1:]:
        command, _, shown = part.partition("\n")
        words = shlex.split(command)
        if words[0] == "hookloop":
            done = subprocess.run(
                [sys.executable, "-m", *words], capture_output=True, text=True, env=ENVIRONMENT, check=True
            )
            shown = "\n".join(line.rstrip() for line in done.stdout.rstrip("\n").split("\n"))
        parts.append(f"$ {command}\n{shown}".rstrip())
    return "\n".join(parts)


def main() -> None:
    """Refresh the pages that are named."""
    for page in map(Path, sys.argv[1:]):
        text = BLOCK.sub(lambda match: match[1] + refreshed(match[2]) + match[3], page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
