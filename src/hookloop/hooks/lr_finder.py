"""A search for the learning rate: a rehearsal in which it rises until the loss does."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookloop.core import HookContext, TrainingLoop
from hookloop.core.global_random import load_global_random, save_global_random
from hookloop.errors import ConfigError, RegistrationError

Live = Any

FIRST_STEPS = 10  # in which the mean loss is one of too few batches to judge by


@dataclass(frozen=True, slots=True)
class LearningRates:
    """What a rehearsal has found; ``plot`` draws it."""

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    """Smoothed."""
    suggestion: float | None
    """Where the loss falls most steeply; None if it never falls."""

    def plot(self, path: str | Path) -> None:
        """Draw the loss over the learning rate, the suggestion marked, into a .png or .svg file (extra ``plot``)."""
        from hookloop.charts import Curve, Panel, write_picture

        suggestion = () if self.suggestion is None else ((self.suggestion, "suggestion"),)
        title = "no suggestion" if self.suggestion is None else f"suggestion: {self.suggestion:.2g}"
        curve = Curve("loss", self.rates, self.losses)
        panel = Panel(title, [curve], "learning rate", "smoothed loss", marks=suggestion, is_log_x=True)
        write_picture(Path(path), [panel], title="Search for a learning rate")


class LearningRateFinderHook:
    """Raise the learning rate with each step and note the loss, until it is many times its best.

    Args:
        lowest: The learning rate of the first step.
        highest: The learning rate of the last step.
        steps: How many steps.
        diverges_at: A loss so many times the best one ends the search.
        smoothing: How much of the mean loss is kept at each step.
    """

    name = "learning_rate_finder"
    priority = 1000

    def __init__(
        self,
        lowest: float = 1e-7,
        highest: float = 1.0,
        steps: int = 100,
        diverges_at: float = 4.0,
        smoothing: float = 0.9,
    ) -> None:
        if not 0 < lowest < highest:
            raise RegistrationError(f"The rates must rise from above 0, got {lowest} to {highest}.")
        if steps < 2:
            raise RegistrationError(f"A search needs at least 2 steps, got {steps}.")
        self.lowest, self.highest, self.steps = lowest, highest, steps
        self.diverges_at, self.smoothing = diverges_at, smoothing
        self._rates: list[float] = []
        self._losses: list[float] = []
        self._mean = 0.0

    def on_gradients(self, ctx: HookContext) -> None:
        """Set the learning rate of this step."""
        share = min(len(self._rates), self.steps - 1) / (self.steps - 1)
        rate = self.lowest * (self.highest / self.lowest) ** share
        for group in ctx.optimizer.param_groups:
            group["lr"] = rate
        self._note(rate, float(ctx.loss))
        smoothed = self._losses[-1]
        has_diverged = not math.isfinite(smoothed) or smoothed > self.diverges_at * min(self._losses)
        if len(self._rates) >= self.steps or (has_diverged and len(self._rates) > FIRST_STEPS):
            ctx.request_stop("the search for a learning rate is done")

    def result(self) -> LearningRates:
        """Return what was found."""
        finite = [(rate, loss) for rate, loss in zip(self._rates, self._losses, strict=True) if math.isfinite(loss)]
        rates, losses = [rate for rate, _ in finite], [loss for _, loss in finite]
        return LearningRates(tuple(rates), tuple(losses), _steepest(rates, losses))

    def _note(self, rate: float, loss: float) -> None:
        self._mean = self.smoothing * self._mean + (1 - self.smoothing) * loss
        self._rates.append(rate)
        self._losses.append(self._mean / (1 - self.smoothing ** len(self._rates)))


def find_learning_rate(trainer: Live, train_data: Live, **search: Any) -> LearningRates:
    """Rehearse training with a rising learning rate, and leave model, optimizer and random streams as they were.

    Args:
        trainer: A supervised trainer that has not been started.
        train_data: As for ``trainer.train``.
        search: Arguments of ``LearningRateFinderHook``.
    """
    if trainer.state.clocks.minibatches:
        raise ConfigError("The trainer has trained already; look for a learning rate with a new one.")
    finder = LearningRateFinderHook(**search)
    before, random = copy.deepcopy(trainer.workload.state_dict()), save_global_random()
    trainer.prepare(train_data, epochs=finder.steps)
    context = HookContext(trainer=trainer, model=trainer.model, optimizer=trainer.optimizer)
    try:
        TrainingLoop(trainer.workload, [finder], context=context, watch_signals=False).run()
    finally:
        trainer.workload.release_data()
        before["data"]["fingerprint"] = None  # the training to come may have other data
        trainer.workload.load_state_dict(before)
        load_global_random(random)
    return finder.result()


def _steepest(rates: list[float], losses: list[float]) -> float | None:
    """Return the rate at which the loss falls most steeply, over the logarithm of the rate."""
    falls = [
        ((losses[i + 1] - losses[i - 1]) / math.log(rates[i + 1] / rates[i - 1]), rates[i])
        for i in range(1, len(rates) - 1)
        if rates[i + 1] > rates[i - 1]
    ]
    slope, rate = min(falls, default=(0.0, 0.0))
    return rate if slope < 0 else None
