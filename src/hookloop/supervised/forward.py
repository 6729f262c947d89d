"""From a batch to what a model returns: which parts are inputs, which are targets, and what the model takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from hookloop.errors import ConfigError

Live = Any

TARGETS = ("labels", "label", "targets", "target", "y")
_INPUTS = ("input_ids", "inputs", "input", "x", "pixel_values", "image", "images", "features")


class Forward:
    """Calls a model with a batch of any form.

    A tensor is input and target at once; of a tuple the last part is the target; of a mapping the model is given what
    its ``forward`` has parameters for, and the target is found by its name.

    Args:
        model: Whose ``forward`` tells what it takes.
        call: What is called: the model, or what it was compiled to.
        passes_targets: Whether the model is given the targets too, where it takes them, to compute a loss itself.
    """

    def __init__(self, model: nn.Module, call: Callable[..., Live], *, passes_targets: bool) -> None:
        self._call = call
        self._takes, self._takes_any = _parameters_of(model)
        self._passes_targets = passes_targets
        self._plan: _Plan | None = None

    def __call__(self, batch: Live) -> tuple[Live, Live]:
        """Return what the model makes of a batch, and the targets."""
        kind = type(batch)
        if kind is tuple or kind is list:
            if len(batch) == 2:
                return self._call(batch[0]), batch[1]
            if len(batch) == 1:
                return self._call(batch[0]), batch[0]
            return self._call(*batch[:-1]), batch[-1]
        if kind is Tensor:
            return self._call(batch), batch
        if isinstance(batch, Mapping):
            return self._by_name(batch)
        raise ConfigError(
            f"A batch must be a tensor, a tuple such as (inputs, targets) or a mapping, got a {kind.__name__}; "
            "give a collate function that makes one."
        )

    def inputs_of(self, batch: Live) -> Live:
        """Return the first input of a batch."""
        if isinstance(batch, Mapping):
            return next((batch[name] for name in (*_INPUTS, *batch) if name in batch), None)
        return batch[0] if isinstance(batch, tuple | list) else batch

    def _by_name(self, batch: Mapping[str, Live]) -> tuple[Live, Live]:
        plan = self._plan
        if plan is None or plan.names != batch.keys():
            plan = self._plan = self._make_plan(batch)
        targets = batch[plan.target] if plan.target is not None else self.inputs_of(batch)
        if plan.positional is not None:
            return self._call(batch[plan.positional]), targets
        return self._call(**{to: batch[name] for name, to in plan.passed.items()}), targets

    def _make_plan(self, batch: Mapping[str, Live]) -> _Plan:
        target = next((name for name in TARGETS if name in batch), None)
        passed = {name: name for name in batch if name != target and (name in self._takes or self._takes_any)}
        if not passed:
            left = [name for name in (*_INPUTS, *batch) if name in batch and name != target]
            if not left:
                raise ConfigError(f"The batch has nothing but targets: {', '.join(batch)}.")
            return _Plan(frozenset(batch), target, left[0], {})
        if self._passes_targets and target is not None:
            wanted = next((name for name in (target, "labels") if name in self._takes), None)
            if wanted is not None:
                passed[target] = wanted
        return _Plan(frozenset(batch), target, None, passed)


class _Plan:
    """How batches with these names are passed to the model."""

    __slots__ = ("names", "passed", "positional", "target")

    def __init__(self, names: frozenset[str], target: str | None, positional: str | None, passed: dict[str, str]):
        self.names, self.target, self.positional, self.passed = names, target, positional, passed


def _parameters_of(model: nn.Module) -> tuple[set[str], bool]:
    parameters = inspect.signature(model.forward).parameters.values()
    names = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    return names, any(each.kind is each.VAR_KEYWORD for each in parameters)
