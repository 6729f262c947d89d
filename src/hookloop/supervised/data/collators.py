"""How samples become a batch, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import default_collate

from hookloop.errors import NameClashError, UnknownNameError
from hookloop.supervised.losses import IGNORED

Batch = Any
Collate = Callable[[list[Any]], Batch]

_TARGETS = ("labels", "label", "targets", "target")

_registered: dict[str, Callable[..., Collate]] = {}


def register_collator(name: str) -> Callable[[Callable[..., Collate]], Callable[..., Collate]]:
    """Make a function that builds a collator available as ``name``; it may take ``pad_token_id``."""

    def register(make: Callable[..., Collate]) -> Callable[..., Collate]:
        if name in _registered and _registered[name] is not make:
            raise NameClashError(f"The collator name {name!r} is taken; choose another.")
        _registered[name] = make
        return make

    return register


def make_collator(name: str | None, *, pad_token_id: int | None = None) -> Collate:
    """Build the collator called ``name``; the default one without a name."""
    name = name or "default"
    if name not in _registered:
        raise UnknownNameError("collator called", name, _registered)
    return _registered[name](pad_token_id=pad_token_id)


class Stack:
    """Stack samples that have one shape; of mappings, pad lists of numbers that differ in length."""

    def __init__(self, pad_token_id: int | None = None) -> None:
        self._pad = 0 if pad_token_id is None else pad_token_id

    def __call__(self, samples: list[Any]) -> Batch:
        """Return the batch of some samples."""
        first = samples[0]
        if not isinstance(first, Mapping):
            return default_collate(samples)
        rows = cast("list[Mapping[str, Any]]", samples)
        return {name: self._column(name, [row[name] for row in rows]) for name in first}

    def _column(self, name: str, values: list[Any]) -> Any:
        first = values[0]
        if isinstance(first, list | tuple) and first and isinstance(first[0], int | float):
            return pad([torch.tensor(value) for value in values], IGNORED if name in _TARGETS else self._pad)
        if isinstance(first, Tensor) and first.dim() and len({tuple(value.shape) for value in values}) > 1:
            return pad(values, IGNORED if name in _TARGETS else self._pad)
        return default_collate(values)


class Tokens:
    """Pad sequences of tokens to the longest, with a mask of what is real and with targets that ignore the padding."""

    def __init__(self, pad_token_id: int | None = None) -> None:
        self._pad = 0 if pad_token_id is None else pad_token_id

    def __call__(self, samples: list[Any]) -> dict[str, Tensor]:
        """Return the batch of some sequences, or of mappings with ``input_ids``."""
        rows = [sample if isinstance(sample, Mapping) else {"input_ids": _only(sample)} for sample in samples]
        tokens = [torch.as_tensor(row["input_ids"]) for row in rows]
        targets = [torch.as_tensor(row.get("labels", row["input_ids"])) for row in rows]
        return {
            "input_ids": pad(tokens, self._pad),
            "attention_mask": pad([torch.ones_like(row) for row in tokens], 0),
            "labels": pad(targets, IGNORED),
        }


register_collator("default")(Stack)
register_collator("language_modeling")(Tokens)


def pad(rows: Sequence[Tensor], value: int) -> Tensor:
    """Return rows of several lengths as one tensor, filled up at the end."""
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value)


def _only(sample: Any) -> Any:
    return sample[0] if isinstance(sample, tuple) else sample
