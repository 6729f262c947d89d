"""What is minimised: the model's answer to a batch, as a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError
from hookloop.supervised.forward import Forward
from hookloop.supervised.losses import AUTO, CustomLoss, LossFunction, LossStrategy, infer_loss, make_loss
from hookloop.supervised.outputs import ModelOutput
from hookloop.supervised.training_config import Precision

Live = Any
Plain = Any

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, slots=True)
class Measured:
    """A batch, measured."""

    loss: Tensor
    weight: Tensor | int
    """How much it counts in a mean over batches."""
    right: tuple[Tensor, Tensor] | None
    """How many answers are right, and of how many."""
    answers: Callable[[], tuple[Tensor, Tensor] | None]
    """Returns the scores of the answers and the right ones, for whoever wants to look closer."""


class Objective:
    """Runs the model on batches and judges the answers.

    Args:
        model: What answers.
        loss: The name of a strategy, a strategy, or a function of scores and targets; ``auto`` takes the loss that the
            model returns, or else finds a strategy that fits the first batch.
        options: Of the strategy, as far as it takes them.
        precision: ``bf16`` and ``fp16`` run the model in mixed precision.
        device: Where the model is.
        is_compiled: Compile the model first.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: str | LossStrategy | LossFunction = AUTO,
        options: Mapping[str, Live] | None = None,
        *,
        precision: Precision = "fp32",
        device: torch.device | None = None,
        is_compiled: bool = False,
    ) -> None:
        self._options = dict(options or {})
        self._takes_models_loss = loss == AUTO
        self.strategy: LossStrategy | None = _strategy(loss, self._options)
        call: Callable[..., Live] = model
        if is_compiled:
            call = torch.compile(model)
        self._forward = Forward(model, call, passes_targets=self._takes_models_loss)
        self._precision = precision
        self._device_type = device.type if device is not None else "cpu"
        self.loss: Callable[[Live], Tensor] = self._plain_loss if precision == "fp32" else self._mixed_loss

    def measure(self, batch: Live) -> Measured:
        """Return loss and right answers of a batch."""
        with self._autocast():
            raw, targets = self._forward(batch)
            strategy = self.strategy if self.strategy is not None else self._choose(batch, raw, targets)
            output = ModelOutput.from_raw(raw)
            loss = self._judge(strategy, output, targets)
            right = None if output.logits is None or targets is None else strategy.right(output.logits, targets)
        weight = strategy.weight(targets) if isinstance(targets, Tensor) else 1
        logits = output.logits

        def answers() -> tuple[Tensor, Tensor] | None:
            return None if logits is None or targets is None else strategy.answers(logits, targets)

        return Measured(loss, weight, right, answers)

    def state_dict(self) -> dict[str, Plain]:
        """Return which strategy was found."""
        return {"strategy": None if self.strategy is None else self.strategy.name}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on with the strategy that was found."""
        if self._takes_models_loss and saved["strategy"] is not None:
            self.strategy = (
                LossStrategy() if saved["strategy"] == "custom" else make_loss(saved["strategy"], **self._options)
            )

    def _plain_loss(self, batch: Live) -> Tensor:
        raw, targets = self._forward(batch)
        strategy = self.strategy
        if strategy is None:
            strategy = self._choose(batch, raw, targets)
        if type(raw) is Tensor:
            return strategy.loss(raw, targets)
        return self._judge(strategy, ModelOutput.from_raw(raw), targets)

    def _mixed_loss(self, batch: Live) -> Tensor:
        with self._autocast():
            return self._plain_loss(batch)

    def _autocast(self) -> torch.autocast:
        is_mixed = self._precision != "fp32"
        return torch.autocast(self._device_type, _DTYPES.get(self._precision, torch.bfloat16), enabled=is_mixed)

    def _judge(self, strategy: LossStrategy, output: ModelOutput, targets: Live) -> Tensor:
        if self._takes_models_loss and output.loss is not None:
            return output.loss
        if output.logits is None:
            raise ConfigError(f"The model returned no scores for the loss {strategy.name!r} to judge.")
        return strategy.loss(output.logits, targets)

    def _choose(self, batch: Live, raw: Live, targets: Live) -> LossStrategy:
        """Find the strategy that fits a first batch."""
        output = ModelOutput.from_raw(raw)
        own = LossStrategy()  # the model's own loss, of which nothing else is known
        if output.logits is None:
            self.strategy = own
            return own
        try:
            inputs = self._forward.inputs_of(batch)
            name = infer_loss(output.logits, inputs, targets, are_named=isinstance(batch, Mapping))
            self.strategy = make_loss(name, **self._options)
        except ConfigError:
            if output.loss is None:
                raise
            self.strategy = own
        return self.strategy


def _strategy(loss: str | LossStrategy | LossFunction, options: Mapping[str, Live]) -> LossStrategy | None:
    if isinstance(loss, str):
        return None if loss == AUTO else make_loss(loss, **options)
    return loss if isinstance(loss, LossStrategy) else CustomLoss(loss)
