"""Write the parts of docs/rollout_workers.md that come from the code: settings, methods and names.

Usage: ``python tools/worker_tables.py`` prints them; with ``--write`` they replace what stands between the markers.
"""

import argparse
import inspect
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

import hookloop.worker as package
from hookloop.worker import (
    GymnasiumSourceConfig,
    ReplayBuffer,
    ReplayBufferConfig,
    RolloutSource,
    RolloutWorker,
    WorkerConfig,
)

PAGE = Path(__file__).parent.parent / "docs" / "rollout_workers.md"
REFRESH = ".venv/bin/python tools/worker_tables.py --write"


def settings_table(settings: type[BaseModel]) -> str:
    """Return the fields of settings as Markdown."""
    rows = [(f"`{name}`", _default(field), _lower(field.description)) for name, field in settings.model_fields.items()]
    return _table(("setting", "default", "meaning"), rows)


def methods_table(owner: type) -> str:
    """Return the public methods and properties of a class as Markdown, with the first line of what each says."""
    rows: list[tuple[str, str]] = []
    for name, member in vars(owner).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            rows.append((f"`{name}`", _first_line(member)))
        elif inspect.isfunction(member):
            parameters = [each for each in inspect.signature(member).parameters if each != "self"]
            rows.append((f"`{name}({', '.join(parameters)})`", _first_line(member)))
    return _table(("name", "what it does"), rows)


def names_table() -> str:
    """Return everything that can be imported from hookloop.worker, as Markdown."""
    return _table(
        ("name", "what it is"), [(f"`{name}`", _first_line(getattr(package, name))) for name in package.__all__]
    )


PARTS = {
    "worker settings": lambda: settings_table(WorkerConfig),
    "gymnasium settings": lambda: settings_table(GymnasiumSourceConfig),
    "replay settings": lambda: settings_table(ReplayBufferConfig),
    "worker methods": lambda: methods_table(RolloutWorker),
    "source methods": lambda: methods_table(RolloutSource),
    "buffer methods": lambda: methods_table(ReplayBuffer),
    "names": names_table,
}


def refreshed(page: str) -> str:
    """Return the page with every generated part made anew."""
    for name, make in PARTS.items():
        begin, end = f"<!-- begin {name}: {REFRESH} -->", f"<!-- end {name} -->"
        if (page.count(begin), page.count(end)) != (1, 1):
            raise SystemExit(f"{PAGE.name} needs the lines {begin!r} and {end!r}, once each.")
        before, rest = page.split(begin)
        page = f"{before}{begin}\n\n{make()}\n\n{end}{rest.partition(end)[2]}"
    return page


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True)
    return f"`{type(value).__name__}()`" if isinstance(value, BaseModel) else f"`{value!r}`"


def _first_line(owner: object) -> str:
    return _lower((inspect.getdoc(owner) or "").partition("\n")[0].rstrip("."))


def _lower(text: str | None) -> str:
    """Return a sentence as the cell of a table: begun small, without a bar that would end the cell."""
    text = (text or "").replace("|", "or").replace("``", "`")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=f"Print or write the generated parts of docs/{PAGE.name}.")
    parser.add_argument("--write", action="store_true", help=f"rewrite docs/{PAGE.name} instead of printing")
    if parser.parse_args().write:
        PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print("\n\n".join(make() for make in PARTS.values()))
