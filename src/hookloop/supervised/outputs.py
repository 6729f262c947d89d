"""What a model returned, whatever its shape: a tensor, a tuple, a mapping, or an object with attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hookloop.errors import ConfigError

Live = Any

_SCORES = ("logits", "predictions", "prediction_logits", "output", "out", "last_hidden_state")


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """The scores of a model, and its loss if it has computed one itself."""

    logits: Tensor | None
    loss: Tensor | None = None
    raw: Live = None

    @classmethod
    def from_raw(cls, raw: Live) -> ModelOutput:
        """Find scores and loss in what a model returned."""
        if isinstance(raw, Tensor):
            return cls(raw, None, raw)
        if isinstance(raw, Mapping):
            return cls._named(raw.get, [value for value in raw.values() if isinstance(value, Tensor)], raw)
        if isinstance(raw, tuple) and not hasattr(raw, "_fields"):
            return cls._in_order(raw)
        if isinstance(raw, list):
            return cls._in_order(tuple(raw))
        return cls._named(lambda name: getattr(raw, name, None), [], raw)

    @classmethod
    def _named(cls, get: Any, tensors: list[Tensor], raw: Live) -> ModelOutput:
        loss = get("loss")
        logits = next((value for value in map(get, _SCORES) if isinstance(value, Tensor)), None)
        if logits is None:
            logits = next((tensor for tensor in tensors if tensor is not loss), None)
        if logits is None and loss is None:
            raise _nothing_in(raw)
        return cls(logits, loss, raw)

    @classmethod
    def _in_order(cls, raw: tuple[Live, ...]) -> ModelOutput:
        tensors = [value for value in raw if isinstance(value, Tensor)]
        if not tensors:
            raise _nothing_in(raw)
        # (loss, logits, ...) as many models return it when they are given labels, or (logits, ...), or (logits, loss).
        losses = [tensor for tensor in tensors if tensor.dim() == 0]
        scores = [tensor for tensor in tensors if tensor.dim() > 0]
        return cls(scores[0] if scores else None, losses[0] if losses else None, raw)


def _nothing_in(raw: Live) -> ConfigError:
    return ConfigError(
        f"The model returned a {type(raw).__name__} without a tensor that could be scores or a loss; return a tensor, "
        f"(scores, ...), a mapping or an object with one of {', '.join((*_SCORES, 'loss'))}."
    )
