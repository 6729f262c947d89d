"""Text that is on every machine that runs this: the source of the Python standard library."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hookloop.errors import ConfigError
from hookloop.supervised.data.source import Numbered
from hookloop.supervised.datasets.split import DataForm, Split
from hookloop.supervised.seeds import generator

Plain = Any

TRAINING = (
    "argparse", "ast", "bdb", "calendar", "configparser", "csv", "difflib", "dis", "doctest", "enum", "fractions",
    "ftplib", "functools", "gettext", "heapq", "imaplib", "inspect", "ipaddress", "locale", "mailbox", "mimetypes",
    "optparse", "pdb", "pickle", "pickletools", "platform", "plistlib", "pprint", "pstats", "random", "shutil",
    "smtplib", "socket", "ssl", "statistics", "subprocess", "tarfile", "tempfile", "textwrap", "threading", "tokenize",
    "traceback", "typing", "uuid",
)  # fmt: skip
HELD_OUT = (
    "cmd",
    "code",
    "fileinput",
    "getopt",
    "profile",
    "queue",
    "sched",
    "selectors",
    "shelve",
    "trace",
    "webbrowser",
)

# Fixed, so that a saved model means the same symbols everywhere: tab, line feed, what ASCII prints, and anything else.
ALPHABET = "\t\n" + "".join(map(chr, range(32, 127)))
OTHER = "\N{REPLACEMENT CHARACTER}"
SYMBOLS = ALPHABET + OTHER


def encode(text: str) -> Tensor:
    """Return the numbers of a text's symbols; those outside the alphabet share one."""
    numbers = {symbol: number for number, symbol in enumerate(SYMBOLS)}
    return torch.tensor([numbers.get(symbol, len(ALPHABET)) for symbol in text], dtype=torch.int64)


def decode(numbers: Tensor) -> str:
    """Return the text of symbols given by number."""
    return "".join(SYMBOLS[number] for number in numbers.tolist())


def strange_symbols(text: str) -> list[str]:
    """Return the symbols of a text that are outside the alphabet, each once."""
    return [symbol for symbol in dict.fromkeys(text) if symbol not in ALPHABET]


def charlm_form(block_size: int) -> DataForm:
    """Return what a model for such texts must know."""
    return DataForm(classes=len(SYMBOLS), block_size=block_size)


def charlm(*, block_size: int, batch_size: int, batches_per_epoch: int, val_windows: int) -> Split:
    """Return random windows of the source of some modules, and fixed ones of modules that are held out."""
    train, val = encode(_source_of(TRAINING)), encode(_source_of(HELD_OUT))
    windows = val.unfold(0, block_size + 1, max((len(val) - block_size - 1) // val_windows, 1))[:val_windows]
    return Split(
        train=Windows(train, block_size=block_size, batch_size=batch_size, batches=batches_per_epoch),
        val=(windows[:, :-1].contiguous(), windows[:, 1:].contiguous()),
        classes=len(SYMBOLS),
        block_size=block_size,
    )


class Windows(Numbered):
    """Windows of a text at random places, and the same moved on by one symbol; which, follows from seed and epoch.

    Args:
        symbols: The whole text, as numbers.
        block_size: Symbols in a window.
        batch_size: Windows in a batch.
        batches: Batches in an epoch.
    """

    def __init__(self, symbols: Tensor, *, block_size: int, batch_size: int, batches: int) -> None:
        if len(symbols) <= block_size:
            raise ConfigError(f"A text of {len(symbols)} symbols has no window of {block_size} and one that follows.")
        super().__init__(batches * batch_size, batch_size, drop_last=False, shuffle=True, seed=0)
        self._symbols = symbols
        self._within = torch.arange(block_size)
        self._sha256 = hashlib.sha256(symbols.numpy().tobytes()).hexdigest()

    @property
    def fingerprint(self) -> dict[str, Plain]:
        """What must be the same for a resume: the text, too."""
        return {**super().fingerprint, "content": self._sha256}

    def iterate(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of an epoch from number ``start`` on."""
        last = len(self._symbols) - len(self._within)
        places = torch.randint(last, (self._count,), generator=generator(self.seed, "windows", epoch))
        for begins in self.mine(places).split(self.share_size)[start:]:
            index = begins[:, None] + self._within
            yield self._symbols[index], self._symbols[index + 1]


def _source_of(modules: Sequence[str]) -> str:
    return "\n".join(_read(module) for module in modules)


def _read(module: str) -> str:
    """Return the source of a module as text; it is not imported."""
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py") or not Path(spec.origin).is_file():
        raise ConfigError(
            f"The source of the standard library's module {module!r} is not on this machine, which the data 'charlm' "
            "are made of; install Python with its sources."
        )
    return Path(spec.origin).read_text(encoding="utf-8")
