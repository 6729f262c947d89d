"""Loss strategies: from scores and targets to a number, by name.

Legend: ``B`` samples, ``T`` positions, ``C`` classes, ``H``, ``W`` pixels. Targets of ``IGNORED`` count nowhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from hookloop.errors import ConfigError, NameClashError, UnknownNameError

IGNORED = -100
AUTO = "auto"

LossFunction = Callable[[Any, Any], Tensor]


class LossStrategy:
    """Turns what a model returned and what it should have returned into a number to minimise.

    Derive from it, decorate with ``@register_loss("name")``, and ``TrainingConfig(loss="name")`` finds it.
    """

    name: ClassVar[str] = "custom"

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of a batch."""
        raise NotImplementedError(f"{type(self).__name__} needs loss(self, logits, targets), the mean loss of a batch.")

    def right(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return how many answers are right, and of how many; None where nothing is right or wrong."""
        return None

    def answers(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the scores ``[N, C]`` of all answers that count, and the right ones ``[N]``; None without classes."""
        return None

    def weight(self, targets: Tensor) -> Tensor | int:
        """Return how much this batch counts in a mean over batches: its samples, or answers that are not ignored."""
        return len(targets)


S = TypeVar("S", bound=type[LossStrategy])

_registered: dict[str, type[LossStrategy]] = {}


def register_loss(name: str, *aliases: str) -> Callable[[S], S]:
    """Make a strategy available to configurations as ``name``, and under the aliases."""

    def register(strategy: S) -> S:
        for each in (name, *aliases):
            if each == AUTO or (each in _registered and _registered[each] is not strategy):
                taken = AUTO if each == AUTO else _registered[each].__name__
                raise NameClashError(f"The loss name {each!r} is taken by {taken}; choose another.")
        strategy.name = name
        _registered.update(dict.fromkeys((name, *aliases), strategy))
        return strategy

    return register


def loss_names() -> list[str]:
    """Return every name a configuration may use, aliases included."""
    return sorted(_registered)


def make_loss(name: str, **options: Any) -> LossStrategy:
    """Build the strategy called ``name``; of the options it is given those that it takes."""
    if name not in _registered:
        raise UnknownNameError("loss called", name, (*_registered, AUTO))
    strategy = _registered[name]
    takes = inspect.signature(strategy).parameters
    return strategy(**{option: value for option, value in options.items() if option in takes})


class _Classes(LossStrategy):
    """Cross entropy over the classes at axis 1; everything that classifies is this with other shapes."""

    def __init__(self, class_weights: Sequence[float] | Tensor | None = None, label_smoothing: float = 0.0) -> None:
        self._weights = None if class_weights is None else torch.as_tensor(class_weights, dtype=torch.float32)
        self._smoothing = label_smoothing

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy of the answers that are not ignored."""
        return functional.cross_entropy(
            logits, targets, weight=self._weights, ignore_index=IGNORED, label_smoothing=self._smoothing
        )

    def right(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return how often the class with the highest score is the right one."""
        counts = targets != IGNORED
        return ((logits.argmax(1) == targets) & counts).sum(), counts.sum()

    def answers(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the scores of each answer that is not ignored, with the classes last."""
        scores, wanted = logits.movedim(1, -1).reshape(-1, logits.shape[1]), targets.reshape(-1)
        counts = wanted != IGNORED
        return scores[counts], wanted[counts]

    def weight(self, targets: Tensor) -> Tensor | int:
        """Return how many targets are not ignored."""
        return (targets != IGNORED).sum()


@register_loss("classification")
class Classification(_Classes):
    """Scores ``[B, C]`` against class numbers ``[B]``."""


@register_loss("vision_classification", "image_classification")
class VisionClassification(_Classes):
    """Scores ``[B, C]`` of images against class numbers ``[B]`` or ``[B, 1]``."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy."""
        return super().loss(logits, targets.reshape(-1))

    def right(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return how many images are recognised."""
        return super().right(logits, targets.reshape(-1))


@register_loss("segmentation")
class Segmentation(_Classes):
    """Scores ``[B, C, H, W]`` against class numbers ``[B, H, W]`` or ``[B, 1, H, W]``, pixel by pixel."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy over all pixels that are not ignored."""
        if logits.dim() != 4:
            raise ConfigError(f"Segmentation needs scores [B, C, H, W], got the shape {tuple(logits.shape)}.")
        return super().loss(logits, self._pixels(targets))

    def right(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return how many pixels are right."""
        return super().right(logits, self._pixels(targets))

    @staticmethod
    def _pixels(targets: Tensor) -> Tensor:
        return targets.squeeze(1) if targets.dim() == 4 else targets


@register_loss("token_classification", "masked_language_modeling", "mlm", "next_token")
class TokenClassification(_Classes):
    """Scores ``[B, T, C]`` against class numbers ``[B, T]``, position by position: targets stand where they belong.

    Masked language modelling is this, with ``IGNORED`` wherever nothing was masked.
    """

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy over all positions that are not ignored."""
        return super().loss(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))

    def right(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return how many positions are right."""
        return super().right(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))

    def answers(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the scores of each position that is not ignored."""
        return super().answers(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


@register_loss("language_modeling", "causal_lm", "lm")
class LanguageModeling(TokenClassification):
    """Scores ``[B, T, C]`` against the tokens ``[B, T]`` themselves: position t is to foretell token t + 1.

    Args:
        pad_token_id: Targets of this number are padding, and ignored.
        class_weights: A weight for each token.
        label_smoothing: Share of the probability that is spread over all tokens.
    """

    def __init__(
        self,
        pad_token_id: int | None = None,
        class_weights: Sequence[float] | Tensor | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(class_weights, label_smoothing)
        self._pad = pad_token_id

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross entropy of the tokens that follow."""
        return super().loss(logits[:, :-1], self._following(targets))

    def right(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return how many of the tokens that follow are foretold."""
        return super().right(logits[:, :-1], self._following(targets))

    def answers(self, logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the scores of each token that follows."""
        return super().answers(logits[:, :-1], self._following(targets))

    def weight(self, targets: Tensor) -> Tensor | int:
        """Return how many tokens are to be foretold."""
        return super().weight(self._following(targets))

    def _following(self, targets: Tensor) -> Tensor:
        if targets.dim() < 2 or targets.shape[1] < 2:
            raise ConfigError(
                f"Language modelling needs sequences of at least 2 tokens, got targets of shape {tuple(targets.shape)}."
            )
        following = targets[:, 1:]
        return following if self._pad is None else following.masked_fill(following == self._pad, IGNORED)


@register_loss("regression", "mse")
class Regression(LossStrategy):
    """Mean squared error; ``[B]`` and ``[B, 1]`` are the same thing."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean squared error."""
        if logits.shape != targets.shape:
            if logits.numel() != targets.numel():
                raise ConfigError(
                    f"Regression needs one answer per target, got {tuple(logits.shape)} for {tuple(targets.shape)}."
                )
            targets = targets.reshape(logits.shape)
        return functional.mse_loss(logits, targets.to(logits.dtype))


class CustomLoss(LossStrategy):
    """A function of scores and targets."""

    def __init__(self, function: LossFunction) -> None:
        self.loss = function  # type: ignore[method-assign]  # called as it is: a step saves a call


def infer_loss(logits: Tensor, inputs: Any, targets: Any, *, are_named: bool) -> str:
    """Return the name of the strategy that fits a first batch, or say that it has to be named."""
    if isinstance(targets, Tensor) and targets.is_floating_point():
        return "regression"
    shape, wanted = tuple(logits.shape), tuple(targets.shape) if isinstance(targets, Tensor) else None
    if len(shape) == 2 and wanted in (shape[:1], (shape[0], 1)):
        return "classification" if len(wanted or ()) == 1 else "vision_classification"
    if len(shape) == 4 and wanted in ((shape[0], *shape[2:]), (shape[0], 1, *shape[2:])):
        return "segmentation"
    if len(shape) == 3 and wanted == shape[:2]:
        found = _infer_language(inputs, targets, are_named=are_named)
        if found is not None:
            return found
    raise ConfigError(
        f"No loss fits scores of shape {shape} and targets of shape {wanted} beyond doubt; name one: "
        f"TrainingConfig(loss=...), one of {', '.join(loss_names())}."
    )


def _infer_language(inputs: Any, targets: Tensor, *, are_named: bool) -> str | None:
    if not isinstance(inputs, Tensor) or inputs.shape != targets.shape or inputs.is_floating_point():
        return "language_modeling" if are_named else "token_classification"
    if torch.equal(inputs[:, 1:], targets[:, :-1]) and not torch.equal(inputs, targets):
        return "token_classification"  # the targets have been moved already
    return "language_modeling" if are_named or torch.equal(inputs, targets) else None
