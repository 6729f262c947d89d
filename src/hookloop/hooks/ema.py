"""Weights averaged over the steps of a run, which are often better than the last ones."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from hookloop.core import HookContext
from hookloop.errors import RegistrationError

Live = Any
Plain = Any


class EmaHook:
    """Keep an exponential moving average of the weights; training itself never sees it.

    Buffers, such as the statistics of batch normalisation, are the model's own. The average is saved with the run.

    Args:
        decay: How much of the average is kept at each step.
        validates: Whether validations measure the average instead of the latest weights.
    """

    name = "ema"
    ranks = "all"
    on_error = "raise"

    def __init__(self, decay: float = 0.999, validates: bool = True) -> None:
        if not 0 <= decay < 1:
            raise RegistrationError(f"decay must lie in [0, 1), got {decay!r}.")
        self.decay = decay
        self.validates = validates
        self._averages: dict[str, Live] = {}
        self._kept: list[Live] | None = None

    @property
    def averages(self) -> Mapping[str, Live]:
        """The averaged weights, by the names of the parameters."""
        return self._averages

    def on_training_start(self, ctx: HookContext) -> None:
        """Begin with the weights as they are, unless the average was restored."""
        if not self._averages:
            self._averages = {name: weight.detach().clone() for name, weight in _weights(ctx.model)}

    def on_optimizer_step(self, ctx: HookContext) -> None:
        """Move the average a little towards the new weights."""
        import torch  # here and not above: naming a hook should not cost the import

        latest = [weight.detach() for _, weight in _weights(ctx.model)]
        # One kernel for all weights instead of one for each.
        torch._foreach_lerp_(  # pyright: ignore[reportPrivateImportUsage]  # there is no public name for it
            list(self._averages.values()), latest, 1 - self.decay
        )

    def on_evaluation_start(self, ctx: HookContext) -> None:
        """Put the average into the model for the length of a validation."""
        if self.validates and self._averages and self._kept is None:
            self._kept = [weight.detach().clone() for _, weight in _weights(ctx.model)]
            self._write(ctx.model, list(self._averages.values()))

    def on_evaluation_end(self, ctx: HookContext) -> None:
        """Put the weights back that are trained."""
        self._put_back(ctx.model)

    def on_exception(self, ctx: HookContext) -> None:
        """Put the weights back, if it was the validation that failed."""
        self._put_back(ctx.model)

    @contextmanager
    def applied(self, model: Live) -> Generator[Live]:
        """Give the model with the averaged weights, for the length of a ``with`` block."""
        kept = [weight.detach().clone() for _, weight in _weights(model)]
        self._write(model, list(self._averages.values()))
        try:
            yield model
        finally:
            self._write(model, kept)

    def state_dict(self) -> dict[str, Plain]:
        """Return the average, which is the live one."""
        return {"averages": dict(self._averages)}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on with a saved average."""
        self._averages = dict(saved["averages"])

    def _put_back(self, model: Live) -> None:
        if self._kept is not None:
            self._write(model, self._kept)
            self._kept = None

    @staticmethod
    def _write(model: Live, values: list[Live]) -> None:
        for (_, weight), value in zip(_weights(model), values, strict=True):
            weight.data.copy_(value)


def _weights(model: Live) -> list[tuple[str, Live]]:
    return [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
