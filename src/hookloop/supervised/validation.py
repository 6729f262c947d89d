"""Validation: the model as it is, on data it is not trained on, leaving no trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from hookloop.core import Every, HookContext, TrainingLoop
from hookloop.supervised.data.source import Source
from hookloop.supervised.meters import Meter
from hookloop.supervised.objective import Measured, Objective

PREFIX = "val_"
MOST_EXPONENT = 700.0  # e to this is still a number


class ValidationLoop:
    """Measures a model on a source of batches: without gradients, in evaluation mode, which is put back afterwards.

    Args:
        model: What is measured.
        objective: How.
    """

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        self._model = model
        self._objective = objective
        self.keeps_answers = 0
        """How many answers of each validation are kept at least, from its beginning on; 0 for none."""
        self.answers: list[tuple[Tensor, Tensor]] = []
        """The answers of the last validation that were kept: scores ``[N, C]`` and what is right ``[N]``."""

    def run(self, source: Source) -> dict[str, float]:
        """Return the mean loss over all batches, each as heavy as it is large, and the accuracy where there is one."""
        loss, right = Meter(), Meter()
        self.answers = []
        with evaluation_mode(self._model), torch.no_grad():
            for batch in source.iterate(0):
                measured = self._objective.measure(batch)
                loss.add(measured.loss.detach().double(), float(measured.weight))
                if measured.right is not None:
                    correct, answers = measured.right
                    right.add(correct.double() / answers.clamp(min=1), float(answers))
                if sum(len(wanted) for _, wanted in self.answers) < self.keeps_answers:
                    self._keep(measured)
        return summary(loss, right, self._objective)

    def _keep(self, measured: Measured) -> None:
        found = measured.answers()
        if found is not None:
            self.answers.append(found)

    def measure(self, batch: Any) -> Measured:
        """Measure a single batch."""
        with evaluation_mode(self._model), torch.no_grad():
            return self._objective.measure(batch)


class ValidationHook:
    """Validates at the end of an epoch, before anybody looks at its metrics; also when asked to."""

    name = "validation"
    stage = "evaluate"
    serves = ("evaluation",)
    ranks = "all"
    on_error = "raise"

    def __init__(self, validate: Callable[[TrainingLoop], dict[str, float]], every_epochs: int = 1) -> None:
        self.schedule = {"epoch_end": Every(every_epochs)}
        self._validate = validate

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Validate, and add what was found to the metrics of the epoch."""
        if ctx.loop is not None:
            ctx.metrics.update(self._validate(ctx.loop))


@contextmanager
def evaluation_mode(model: nn.Module) -> Generator[None]:
    """Switch a model to evaluation and put every module back into the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def summary(loss: Meter, right: Meter, objective: Objective) -> dict[str, float]:
    """Return the metrics of a pass over data: loss, accuracy, and perplexity where tokens are foretold."""
    found: dict[str, float] = {}
    mean = loss.mean()
    if mean is not None:
        found["loss"] = mean
        name = objective.strategy.name if objective.strategy is not None else ""
        if name in ("language_modeling", "token_classification") and mean < MOST_EXPONENT:
            found["perplexity"] = math.exp(mean)
    accuracy = right.mean()
    if accuracy is not None:
        found["accuracy"] = accuracy
    return found
