"""Looking for numbers that are not finite, and keeping the last weights that were.

One sum tells that all numbers are finite; only if it is not finite itself is each of them looked at, as a sum of
finite numbers can overflow. Tensors are known by their face: naming a hook should not cost the import of torch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Live = Any  # tensors, modules and optimizers

MOST_NAMES = 5
FEW = 4  # up to here sums are quicker than one norm of all


def is_float(value: Live) -> bool:
    """Tell whether this is a tensor that can hold a NaN."""
    dtype = getattr(value, "dtype", None)
    return bool(getattr(dtype, "is_floating_point", False) or getattr(dtype, "is_complex", False))


def read_gauge(tensors: Sequence[Live], loss: Live = None) -> float:
    """Return a number that is finite only if all tensors and the loss are; a device is read from once."""
    total = 0.0 if loss is None else loss
    if len(tensors) <= FEW and all(tensor.is_cpu for tensor in tensors):
        for tensor in tensors:
            total = float(total) + abs(tensor.sum().item())  # here reading costs less than adding
        return float(total)
    from torch.nn.utils import get_total_norm

    return float(get_total_norm([tensor.detach() for tensor in tensors]) + total)


def read_step_gauge(model: Live, optimizer: Live, loss: Live) -> float:
    """Return a number that is finite only if all gradients and the loss are."""
    norm = getattr(optimizer, "gradient_norm", None)
    if norm is None:
        return read_gauge(gradient_tensors(model, optimizer), loss)
    total = norm()
    if loss is None:
        return total.item()
    return total.item() + float(loss) if total.is_cpu else (total + loss).item()


def scalar(loss: Live) -> Live:
    """Return a loss as a number, or as a tensor of one; None if it is neither."""
    if hasattr(loss, "detach"):
        if loss.requires_grad:
            loss = loss.detach()
        return loss if loss.dim() == 0 else loss.sum()
    return loss if isinstance(loss, int | float) else None


def gradient_tensors(model: Live, optimizer: Live) -> list[Live]:
    """Return all gradients: the one flat tensor of an optimizer that has it, else those of the parameters."""
    flat = getattr(optimizer, "gradients", None)
    if hasattr(flat, "isfinite"):
        return [flat]
    return [gradient for _, gradient in named_gradients(model)]


def weight_tensors(model: Live, optimizer: Live) -> list[Live]:
    """Return all that an optimizer step changes: the parameters that are trained, and the optimizer's memory."""
    tensors = _tensors_of(optimizer)
    if tensors is not None:
        return list(tensors)
    return [tensor for _, tensor in (*_named_parameters(model), *_named_moments(optimizer))]


def broken_gradients(model: Live, optimizer: Live) -> str:
    """Return words for the gradients that are not finite; empty if all are."""
    words = _words("the gradients of {} parameters", named_gradients(model))
    if words or _is_finite(gradient_tensors(model, optimizer)):
        return words
    return "the optimizer's gradients"


def broken_weights(model: Live, optimizer: Live) -> str:
    """Return words for the parameters, or else the parts of the optimizer's memory, that are not finite."""
    words = _words("{} parameters", _named_parameters(model)) or _words(
        "{} tensors of the optimizer", _named_moments(optimizer)
    )
    if words or _is_finite(weight_tensors(model, optimizer)):
        return words
    return "the optimizer's memory"


def broken_columns(experience: Live, names: Iterable[str]) -> str:
    """Return words for the columns of the collected experience that are not finite; empty if all are."""
    parts: list[str] = []
    for name in names:
        column = experience[name][: experience.steps]
        count = int((~column.isfinite()).sum())
        if count:
            parts.append(f"{count} of {column.numel()} values of {name!r}")
    return _joined(parts)


class LastGood:
    """A copy of the weights and of the optimizer's memory, from when all of it was finite."""

    def __init__(self) -> None:
        self._copies: list[Live] = []
        self._states: tuple[Live, Live] | None = None

    def keep(self, model: Live, optimizer: Live) -> None:
        """Copy what is there now."""
        tensors = _tensors_of(optimizer)
        if tensors is None:
            states = tuple(part.state_dict() if hasattr(part, "state_dict") else None for part in (model, optimizer))
            self._states = copy.deepcopy(states)  # type: ignore[assignment]  # one each for model and optimizer
        elif len(self._copies) != len(tensors):
            self._copies = [tensor.clone() for tensor in tensors]
        else:
            for kept, tensor in zip(self._copies, tensors, strict=True):
                kept.copy_(tensor)

    def put_back(self, model: Live, optimizer: Live) -> None:
        """Write the copy, if there is one, over what is there now."""
        tensors = _tensors_of(optimizer)
        if tensors is not None and self._copies:
            for kept, tensor in zip(self._copies, tensors, strict=True):
                tensor.copy_(kept)
        elif self._states is not None:
            for part, state in zip((model, optimizer), self._states, strict=True):
                if state is not None:
                    part.load_state_dict(copy.deepcopy(state))


def _is_finite(tensors: Iterable[Live]) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def _tensors_of(optimizer: Live) -> tuple[Live, ...] | None:
    """Return the tensors that an optimizer over one flat buffer says its steps change; None for others."""
    tensors = getattr(optimizer, "tensors", None)
    return tensors if isinstance(tensors, tuple) else None


def _named_parameters(model: Live) -> Iterator[tuple[str, Live]]:
    if hasattr(model, "named_parameters"):
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and is_float(parameter):
                yield name, parameter


def named_gradients(model: Live) -> Iterator[tuple[str, Live]]:
    """Yield the gradient of each parameter that has one; of a sparse gradient, the values that it holds."""
    for name, parameter in _named_parameters(model):
        gradient = parameter.grad
        if gradient is not None:
            yield name, gradient.coalesce().values() if gradient.is_sparse else gradient


def _named_moments(optimizer: Live) -> Iterator[tuple[str, Live]]:
    """Yield what a torch optimizer remembers of each parameter."""
    for index, memory in enumerate(getattr(optimizer, "state", {}).values()):
        for name, value in memory.items():
            if is_float(value):
                yield f"{name} of parameter {index}", value


def _words(sentence: str, named: Iterable[tuple[str, Live]]) -> str:
    everything = list(named)
    broken = [name for name, tensor in everything if not _is_finite([tensor])]
    if not broken:
        return ""
    shown = ", ".join(broken[:MOST_NAMES]) + (", ..." if len(broken) > MOST_NAMES else "")
    return f"{sentence.format(f'{len(broken)} of {len(everything)}')} ({shown})"


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(part for part in parts if part)


def loss_words(loss: Live) -> str:
    """Return words for a loss that is not finite; empty if it is."""
    value = None if loss is None else float(loss)
    return "" if value is None or math.isfinite(value) else f"the loss ({value})"


def step_words(loss: Live, gradients: str) -> str:
    """Return words for what is wrong with a step; empty if nothing is."""
    return _joined([loss_words(loss), gradients])
