"""What a task is made of, and data that arrange themselves accordingly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from pydantic import Field

from hookloop.config.settings import Settings
from hookloop.errors import ConfigError, UnknownNameError
from hookloop.supervised.data.source import order_of
from hookloop.supervised.data.tensors import find_tensors

Modality = Literal["text", "vision", "multimodal", "tabular"]

MODALITY_LOSSES: Mapping[str, str] = {
    "text": "language_modeling",
    "vision": "vision_classification",
    "multimodal": "language_modeling",
    "tabular": "auto",
}


def loss_of_modality(modality: str) -> str:
    """Return the loss strategy that goes with a modality."""
    if modality not in MODALITY_LOSSES:
        raise UnknownNameError("modality", modality, MODALITY_LOSSES)
    return MODALITY_LOSSES[modality]


class TaskSpec(Settings):
    """What is to be learned from which fields of the data."""

    name: str = Field(default="task", description="What the task is called")
    modality: Modality = Field(default="text", description="What the inputs are")
    loss: str | None = Field(default=None, description="The loss strategy; by default the modality's")
    input_fields: tuple[str, ...] = Field(default=(), description="Fields of a sample that the model is given")
    target_field: str | None = Field(default=None, description="The field that it should answer with")
    pad_token_id: int | None = Field(default=None, description="What shorter sequences are filled up with")
    collator: str | None = Field(default=None, description="How samples become a batch, by name")

    @property
    def loss_name(self) -> str:
        """The loss strategy of this task."""
        return self.loss if self.loss is not None else loss_of_modality(self.modality)

    @property
    def collator_name(self) -> str | None:
        """The collator of this task; text is padded, anything else stacked."""
        is_padded = self.modality == "text" and self.loss_name in ("language_modeling", "causal_lm", "lm")
        return self.collator or ("language_modeling" if is_padded and not self.input_fields else None)


class UniversalDataModule:
    """Training and validation data of a task; without validation data of its own, a share is set apart.

    Which samples those are follows from the seed alone.

    Args:
        task: What is to be learned.
        data: A map dataset, or tensors.
        val_data: Samples to validate on; None takes ``val_share`` of the data.
        val_share: The share that is set apart; 0 for none.
        seed: What the split follows from.
    """

    def __init__(
        self, task: TaskSpec, data: Any, val_data: Any = None, *, val_share: float = 0.1, seed: int = 42
    ) -> None:
        if not 0 <= val_share < 1:
            raise ConfigError(f"val_share must lie in [0, 1), got {val_share}.")
        self.task = task
        found = find_tensors(data)
        if found is not None and not found[2] and not task.input_fields:
            data = torch.utils.data.TensorDataset(*found[0]) if not found[1] else _Columns(data)
        if val_data is None and val_share:
            data, val_data = split(data, val_share, seed=seed)
        self.train_data = self._fields(data)
        self.val_data = None if val_data is None else self._fields(val_data)

    def _fields(self, data: Any) -> Any:
        if not self.task.input_fields and self.task.target_field is None:
            return data
        return _Fields(data, self.task.input_fields, self.task.target_field)


def split(data: Any, share: float, *, seed: int) -> tuple[Any, Any]:
    """Return two parts of a map dataset, the second one with this share; who is where follows from the seed."""
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise ConfigError(f"A {type(data).__name__} cannot be split, as its samples have no numbers; give val_data.")
    count = len(data)
    apart = round(count * share)
    if not 0 < apart < count:
        raise ConfigError(f"{share:g} of {count} samples are {apart}; that leaves nothing to train or to validate on.")
    order = order_of(count, seed=seed, epoch=0, shuffle=True)
    kept, taken = order[apart:].sort().values, order[:apart].sort().values
    if isinstance(data, torch.utils.data.TensorDataset):  # stays in memory, and quick
        return tuple(torch.utils.data.TensorDataset(*(t[index] for t in data.tensors)) for index in (kept, taken))  # type: ignore[return-value]  # two of them
    return torch.utils.data.Subset(data, kept.tolist()), torch.utils.data.Subset(data, taken.tolist())


class _Columns:
    """A mapping of columns as a map dataset."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: column[index] for name, column in self._columns.items()}


class _Fields:
    """A map dataset of mappings, reduced to the fields of a task."""

    def __init__(self, data: Any, inputs: tuple[str, ...], target: str | None) -> None:
        self._data = data
        self._inputs = inputs
        self._target = target

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        sample = self._data[index]
        names = self._inputs or tuple(name for name in sample if name != self._target)
        for name in (*names, *((self._target,) if self._target else ())):
            if name not in sample:
                raise UnknownNameError("field", name, sample, where="in the samples of this task")
        chosen = {name: sample[name] for name in names}
        return chosen if self._target is None else {**chosen, "labels": sample[self._target]}
