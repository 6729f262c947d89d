"""How sure the model is of its answers, at each validation."""

from __future__ import annotations

import logging
import math
from dataclasses import asdict
from typing import Any

from hookloop.core import HookContext
from hookloop.errors import RegistrationError

log = logging.getLogger("hookloop.hooks.confidence")

Live = Any


class ConfidenceHook:
    """Log how sure a classifier is at each validation, and whether rightly.

    ``confidence/top1`` and ``top5`` are the mean probability of the likeliest class and of the five likeliest,
    ``entropy`` is in nats, ``calibration_error`` is how far confidence and accuracy are apart. They are taken from the
    answers that the validation gives anyway; nothing is computed twice.

    Args:
        answers: How many answers to look at, at least; those of the first batches of the validation.
        bins: Groups of answers by confidence, for the calibration error.
    """

    name = "confidence"
    on_error = "disable"

    def __init__(self, answers: int = 10_000, bins: int = 15) -> None:
        for name, value in (("answers", answers), ("bins", bins)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise RegistrationError(f"{name} must be at least 1, got {value!r}.")
        self.answers = answers
        self.bins = bins
        self._has_warned = False

    def on_training_start(self, ctx: HookContext) -> None:
        """Ask the validation to keep its answers."""
        validation = _validation(ctx)
        if validation is not None:
            validation.keeps_answers = self.answers

    def on_evaluation_end(self, ctx: HookContext) -> None:
        """Look at the answers, and let go of them."""
        validation = _validation(ctx)
        if validation is None or not validation.answers:
            self._warn_once()
            return
        import torch  # here and not above: naming a hook should not cost the import

        from hookloop.supervised.engine.confidence import confidence_of

        scores, targets = (torch.cat(parts) for parts in zip(*validation.answers, strict=True))
        validation.answers = []
        found = asdict(confidence_of(scores, targets, self.bins))
        ctx.log({f"confidence/{name}": value for name, value in found.items() if math.isfinite(value)})

    def on_close(self, ctx: HookContext) -> None:
        """Let the validation forget its answers again."""
        validation = _validation(ctx)
        if validation is not None:
            validation.keeps_answers, validation.answers = 0, []

    def _warn_once(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("there are no answers to look at: the run has no validation with a loss that knows classes")


def _validation(ctx: HookContext) -> Live | None:
    """Return what validates, if the workload has such a thing."""
    return None if ctx.loop is None else getattr(ctx.loop.workload, "validation", None)
