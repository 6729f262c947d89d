"""Action heads: how a network's outputs become actions, and actions become log-probabilities.

A head has no parameters of its own: it reads the ``parameters`` a network puts out. Nothing here makes a distribution
object, and the gradient of a score is written by hand, because in an update of a small network the number of
operations is what costs. Axes: B rows of a batch (environments or transitions), A choices of one action, or entries of
a continuous one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hookloop.errors import ConfigError, HookloopError
from hookloop.rl.specs import ActionSpec, ContinuousActions, DiscreteActions, MultiDiscreteActions

FEW_CHOICES = 32  # from here on, the order of the axes in memory matters the other way round
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
SMALLEST_UNIFORM = 2.0**-25  # half the step of a float32 uniform: above 0, and no bias to speak of
MASKED_GAUSSIAN = "Continuous actions have no mask; mask choices, or narrow the bounds of the action spec."


class NoLegalActionError(HookloopError, ValueError):
    """An action mask leaves nothing to choose from."""


class MaskError(HookloopError, ValueError):
    """An action mask does not fit the actions."""


class Score(NamedTuple):
    """What a head says about given actions, and what it needs to differentiate that."""

    log_probs: Tensor
    entropy: Tensor
    saved: tuple[Tensor, ...]


class ActionHead(ABC):
    """Turns ``parameters`` [B, num_parameters] into actions and scores actions given them.

    A mask is a bool tensor [B, A], True where an action may be chosen.
    """

    num_parameters: int
    action_shape: tuple[int, ...]
    action_dtype: torch.dtype

    @abstractmethod
    def sample(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw actions and return them with their log-probabilities."""

    @abstractmethod
    def mode(self, parameters: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the likeliest actions."""

    @abstractmethod
    def score(self, parameters: Tensor, actions: Tensor, mask: Tensor | None = None) -> Score:
        """Return log-probabilities [B] and entropy [B], outside autograd."""

    @abstractmethod
    def score_gradient(
        self, saved: Sequence[Tensor], log_probs_grad: Tensor | None, entropy_grad: Tensor | None
    ) -> Tensor:
        """Return the gradient with respect to the parameters, given those with respect to a score."""

    @abstractmethod
    def divergence(self, parameters: Tensor, other: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the Kullback-Leibler divergence [B] of ``other`` from ``parameters``; differentiable."""

    def evaluate(self, parameters: Tensor, actions: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return log-probabilities [B] and entropy [B]; differentiable once."""
        return _Evaluate.apply(self, parameters, actions, mask)  # type: ignore[no-any-return]  # torch types apply as Any

    def check_mask(self, mask: Tensor) -> None:
        """Raise if a mask has the wrong width or a row without a legal action; costs a wait for the device."""
        _require_mask(mask, self.num_parameters)
        _require_legal(mask)


def action_head(spec: ActionSpec) -> ActionHead:
    """Make the head that fits an action spec."""
    if isinstance(spec, DiscreteActions):
        return Categorical(spec.n)
    if isinstance(spec, MultiDiscreteActions):
        return MultiCategorical(spec.nvec)
    return DiagonalGaussian(spec)


class Categorical(ActionHead):
    """One choice out of ``num_choices``; the parameters are logits.

    Illegal choices have probability exactly 0: they are never drawn, add nothing to the entropy and get no gradient.
    """

    def __init__(self, num_choices: int) -> None:
        self.num_parameters = num_choices
        self.action_shape = ()
        self.action_dtype = torch.int64

    def sample(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw choices; all randomness comes from the generator."""
        probs = torch.softmax(_masked(parameters.detach(), mask), 1)
        actions = draw_by_inversion(probs, generator) if probs.device.type == "cpu" else draw_by_race(probs, generator)
        return actions.squeeze(1), probs.gather(1, actions).squeeze(1).log_()

    def mode(self, parameters: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the choices with the largest legal logits."""
        return _masked(parameters, mask).argmax(1)

    def score(self, parameters: Tensor, actions: Tensor, mask: Tensor | None = None) -> Score:
        """Return log-probabilities and entropy; an illegal action scores minus infinity."""
        # Reducing a short axis is fast when it lies first in memory, a long one when it lies last.
        dim = 0 if self.num_parameters <= FEW_CHOICES or parameters.stride(0) == 1 else 1
        logits = _masked(parameters, mask)
        logits = logits.t() if dim == 0 else logits
        chosen = actions.to(torch.int64).unsqueeze(dim)
        all_log_probs = torch.log_softmax(logits, dim)
        log_probs = all_log_probs.gather(dim, chosen).squeeze(dim)
        if mask is None:
            probs = all_log_probs.exp()
            entropy = (probs * all_log_probs).sum(dim).neg_()
            return Score(log_probs, entropy, (all_log_probs, probs, entropy, chosen))
        # Not exp: on minus infinity it takes ten times as long as on a number, and the softmax does not.
        probs = torch.softmax(logits, dim)
        # 0 times minus infinity is not a number; what is illegal counts as 0 times 0.
        illegal = ~(mask.t() if dim == 0 else mask)
        all_log_probs.masked_fill_(illegal, 0)
        entropy = (probs * all_log_probs).sum(dim).neg_()
        return Score(log_probs, entropy, (all_log_probs, probs, entropy, chosen, illegal))

    def score_gradient(
        self, saved: Sequence[Tensor], log_probs_grad: Tensor | None, entropy_grad: Tensor | None
    ) -> Tensor:
        """Return (chosen - probs) * log_probs_grad - probs * (log_probs + entropy) * entropy_grad."""
        all_log_probs, probs, entropy, chosen, *illegal = saved
        dim = 0 if chosen.shape[0] == 1 and all_log_probs.shape[0] == self.num_parameters else 1
        to_add = None if log_probs_grad is None else log_probs_grad.unsqueeze(dim)
        if entropy_grad is None:
            gradient = probs * 0 if to_add is None else probs.mul(to_add).neg_()
        else:
            gradient = torch.add(all_log_probs, entropy.unsqueeze(dim)).mul_(entropy_grad.unsqueeze(dim))
            if to_add is not None:
                gradient.add_(to_add)
            gradient.mul_(probs).neg_()
        if to_add is not None:
            gradient.scatter_add_(dim, chosen, to_add)
            if illegal:
                gradient.masked_fill_(illegal[0], 0)
        return gradient.t() if dim == 0 else gradient

    def divergence(self, parameters: Tensor, other: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the sum of p (log p - log q) over the legal choices."""
        logits = _masked(parameters, mask)
        difference = torch.log_softmax(logits, 1) - torch.log_softmax(_masked(other, mask), 1)
        if mask is not None:
            difference = difference.masked_fill(~mask, 0)
        return (difference * torch.softmax(logits, 1)).sum(1)


class MultiCategorical(ActionHead):
    """Several independent choices at once; the parameters are their logits, one choice after the other."""

    def __init__(self, nvec: Sequence[int]) -> None:
        self.nvec = tuple(nvec)
        self.num_parameters = sum(self.nvec)
        self.action_shape = (len(self.nvec),)
        self.action_dtype = torch.int64
        self._heads = [Categorical(size) for size in self.nvec]

    def sample(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw one choice after the other."""
        drawn = [head.sample(part, legal, generator) for head, part, legal in self._parts(parameters, mask)]
        actions, log_probs = zip(*drawn, strict=True)
        return torch.stack(actions, 1), torch.stack(log_probs, 0).sum(0)

    def mode(self, parameters: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the likeliest option of each choice."""
        return torch.stack([head.mode(part, legal) for head, part, legal in self._parts(parameters, mask)], 1)

    def score(self, parameters: Tensor, actions: Tensor, mask: Tensor | None = None) -> Score:
        """Return the sums of the choices' log-probabilities and entropies."""
        parts = zip(self._parts(parameters, mask), actions.unbind(1), strict=True)
        scores = [head.score(part, chosen, legal) for (head, part, legal), chosen in parts]
        log_probs = torch.stack([score.log_probs for score in scores]).sum(0)
        entropy = torch.stack([score.entropy for score in scores]).sum(0)
        return Score(log_probs, entropy, tuple(tensor for score in scores for tensor in score.saved))

    def score_gradient(
        self, saved: Sequence[Tensor], log_probs_grad: Tensor | None, entropy_grad: Tensor | None
    ) -> Tensor:
        """Return the choices' gradients, one after the other."""
        each = len(saved) // len(self._heads)
        gradients = [
            head.score_gradient(saved[k * each : (k + 1) * each], log_probs_grad, entropy_grad)
            for k, head in enumerate(self._heads)
        ]
        return torch.cat(gradients, 1)

    def divergence(self, parameters: Tensor, other: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the sum of the choices' divergences."""
        parts = zip(self._parts(parameters, mask), other.split(self.nvec, 1), strict=True)
        return torch.stack([head.divergence(part, q, legal) for (head, part, legal), q in parts]).sum(0)

    def check_mask(self, mask: Tensor) -> None:
        """Raise if a mask has the wrong width or leaves one of the choices without a legal option."""
        _require_mask(mask, self.num_parameters)
        for part in mask.split(self.nvec, 1):
            _require_legal(part)

    def _parts(self, parameters: Tensor, mask: Tensor | None) -> list[tuple[Categorical, Tensor, Tensor | None]]:
        masks: Sequence[Tensor | None] = [None] * len(self.nvec) if mask is None else mask.split(self.nvec, 1)
        return list(zip(self._heads, parameters.split(self.nvec, 1), masks, strict=True))


class DiagonalGaussian(ActionHead):
    """Real numbers, each normally distributed; the parameters are the means, then the logarithms of the deviations.

    Actions are not squeezed into the bounds of the spec: what the environment cannot take is its adapter's to clip, and
    the log-probability is that of the action as drawn.
    """

    def __init__(self, spec: ContinuousActions) -> None:
        self.size = math.prod(spec.shape)
        self.num_parameters = 2 * self.size
        self.action_shape = tuple(spec.shape)
        self.action_dtype = torch.float32

    def sample(self, parameters: Tensor, mask: Tensor | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw actions; all randomness comes from the generator."""
        self._refuse(mask)
        means, log_deviations = self._both(parameters.detach())
        noise = torch.empty_like(means).normal_(generator=generator)
        actions = torch.addcmul(means, log_deviations.exp(), noise)
        log_probs = torch.add(log_deviations, noise.square_(), alpha=0.5).sum(1).add_(self._constant).neg_()
        return actions.view(-1, *self.action_shape).to(self.action_dtype), log_probs

    def mode(self, parameters: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the means."""
        self._refuse(mask)
        return parameters[:, : self.size].reshape(-1, *self.action_shape).to(self.action_dtype)

    def score(self, parameters: Tensor, actions: Tensor, mask: Tensor | None = None) -> Score:
        """Return log-densities and entropy."""
        self._refuse(mask)
        means, log_deviations = self._both(parameters)
        precisions = log_deviations.neg().exp_()
        distances = torch.sub(actions.reshape(-1, self.size), means).mul_(precisions)
        width = log_deviations.sum(1)
        log_probs = distances.square().sum(1).mul_(0.5).add_(width).add_(self._constant).neg_()
        return Score(log_probs, width + (self._constant + 0.5 * self.size), (distances, precisions))

    def score_gradient(
        self, saved: Sequence[Tensor], log_probs_grad: Tensor | None, entropy_grad: Tensor | None
    ) -> Tensor:
        """Return log_probs_grad times the distance, and its square less 1 plus entropy_grad."""
        distances, precisions = saved
        gradient = distances.new_zeros((distances.shape[0], self.num_parameters))
        means, log_deviations = self._both(gradient)
        if log_probs_grad is not None:
            torch.mul(distances, precisions, out=means).mul_(log_probs_grad.unsqueeze(1))
            torch.mul(distances, distances, out=log_deviations).sub_(1).mul_(log_probs_grad.unsqueeze(1))
        if entropy_grad is not None:
            log_deviations.add_(entropy_grad.unsqueeze(1))
        return gradient

    def divergence(self, parameters: Tensor, other: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the sum of the entries' divergences."""
        self._refuse(mask)
        means_p, logs_p = self._both(parameters)
        means_q, logs_q = self._both(other)
        spread = (2 * (logs_p - logs_q)).exp() + (means_p - means_q).square() * (-2 * logs_q).exp()
        return (logs_q - logs_p + 0.5 * (spread - 1)).sum(1)

    def check_mask(self, mask: Tensor) -> None:
        """Refuse any mask."""
        self._refuse(mask)

    @property
    def _constant(self) -> float:
        return self.size * HALF_LOG_TWO_PI

    def _both(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        return parameters[:, : self.size], parameters[:, self.size : 2 * self.size]

    def _refuse(self, mask: Tensor | None) -> None:
        if mask is not None:
            raise MaskError(MASKED_GAUSSIAN)


class StateDependentGaussian(DiagonalGaussian):
    """The same, with the features that held noise is made of after the log-deviations; no score depends on them."""

    def __init__(self, spec: ActionSpec, num_features: int) -> None:
        super().__init__(require_continuous(spec))
        self.num_features = num_features
        self.num_parameters += num_features


def require_continuous(spec: ActionSpec) -> ContinuousActions:
    """Return the spec if noise can be added to its actions, and refuse it otherwise."""
    if not isinstance(spec, ContinuousActions):
        raise ConfigError(
            f"State-dependent exploration adds noise to continuous actions, but the environment takes {spec}; "
            "set policy.exploration.kind=gaussian, the default, which lets choices follow their probabilities."
        )
    return spec


class _Evaluate(torch.autograd.Function):
    """One node for all of a head's score."""

    @staticmethod
    def forward(
        ctx: Any, head: ActionHead, parameters: Tensor, actions: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        log_probs, entropy, saved = head.score(parameters, actions, mask)
        ctx.head = head
        ctx.save_for_backward(*saved)
        ctx.set_materialize_grads(False)
        return log_probs, entropy

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, log_probs_grad: Tensor | None, entropy_grad: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]  # torch types it with *args
        if log_probs_grad is None and entropy_grad is None:
            return None, None, None, None
        return None, ctx.head.score_gradient(ctx.saved_tensors, log_probs_grad, entropy_grad), None, None


def draw_by_inversion(probs: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one choice [B, 1] per row where a uniform number falls in the cumulative distribution."""
    sums = probs.cumsum(1)
    threshold = torch.empty_like(sums[:, :1]).uniform_(SMALLEST_UNIFORM, 1, generator=generator)
    # The threshold lies above 0 and not above the total, and the choice is the first whose sum reaches it: so one
    # that adds exactly nothing is never stopped at.
    return torch.searchsorted(sums, threshold.mul_(sums[:, -1:]))


def draw_by_race(probs: Tensor, generator: torch.Generator) -> Tensor:
    """Draw one choice [B, 1] per row by an exponential race, which a rate of exactly 0 never wins.

    A device that sums in parallel rounds neighbouring sums differently, so inverting them could stop at a rate of 0.
    """
    arrivals = torch.empty_like(probs).exponential_(generator=generator)
    return (probs / arrivals).argmax(1, keepdim=True)


def _masked(logits: Tensor, mask: Tensor | None) -> Tensor:
    return logits if mask is None else torch.where(mask, logits, -math.inf)


def _require_mask(mask: Tensor, width: int) -> None:
    if mask.dtype != torch.bool or mask.dim() != 2 or mask.shape[1] != width:
        raise MaskError(
            f"An action mask is a bool tensor [rows, {width}], True where an action is legal; "
            f"got {mask.dtype} {list(mask.shape)}."
        )


def _require_legal(mask: Tensor) -> None:
    legal = mask.any(1)
    if not bool(legal.all()):
        rows = (~legal).nonzero().flatten().tolist()
        raise NoLegalActionError(
            f"Rows {rows[:5]} of the action mask ({len(rows)} of {mask.shape[0]}) allow no action. A finished game "
            "needs a reset before the next step, or a pass among its actions."
        )
