"""From a loss to a step: scale, backward, unscale, clip, step, zero; with room for hooks before the step is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from hookloop.core import Ranks, TrainingLoop
from hookloop.errors import ConfigError
from hookloop.supervised.averaging import GradientMean
from hookloop.supervised.learning_rates import Factor
from hookloop.supervised.meters import Meter

Plain = Any


class GradientAccumulator:
    """Adds up the gradients of several batches and steps along their mean.

    The gradients of a window that is not full yet are state like any other, and are saved.

    Args:
        model: Whose gradients are added up.
        optimizer: How to step.
        accumulation_steps: Batches per optimizer step.
        max_grad_norm: Gradients are scaled down to this norm; None leaves them alone.
        scaler: For 16-bit floats, whose small gradients would vanish.
        factor: The learning rate as a share of the optimizer's own, by the steps done; None leaves it alone.
        ranks: The learners of the run, which step along the mean of their gradients.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        accumulation_steps: int = 1,
        max_grad_norm: float | None = None,
        scaler: torch.amp.GradScaler | None = None,
        factor: Factor | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        if accumulation_steps < 1:
            raise ConfigError(f"accumulation_steps must be at least 1, got {accumulation_steps}.")
        self.optimizer = optimizer
        self.accumulation_steps = accumulation_steps
        self.max_grad_norm = max_grad_norm
        self.scaler = scaler
        self.factor = factor
        self.steps = 0
        """Optimizer steps taken."""
        self.waiting = 0
        """Batches whose gradients have not been stepped along yet."""
        self.loss: Tensor | None = None
        """The loss of the latest batch, cut off from its graph."""
        self.norms = Meter()
        self._model = model
        self._parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._is_uniform = len({(each.device, each.dtype) for each in self._parameters}) == 1
        self._is_uniform_on_cpu = self._is_uniform and self._parameters[0].is_cpu
        # What torch's own zero_grad does, without what it does around it: for a small model that is a tenth of a step.
        self._drops_itself = unwrap(type(optimizer).zero_grad) is unwrap(torch.optim.Optimizer.zero_grad)
        self._full_rates: list[float] = [group["lr"] for group in optimizer.param_groups]
        self._window_loss: Tensor | None = None
        self._norm: Tensor | None = None
        self._norm_value: float | None = None
        self._normed: list[int] = []
        is_alone = ranks is None or ranks.world_size == 1
        self._mean = None if is_alone else GradientMean(ranks, model, self._parameters)  # type: ignore[arg-type]  # there

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step, of the first group of parameters."""
        if self.factor is None:
            return float(self.optimizer.param_groups[0]["lr"])
        return self._full_rates[0] * self.factor(self.steps)

    def accumulate(
        self, loss: Tensor, *, divisor: float | None = None, is_last: bool = False, loop: TrainingLoop | None = None
    ) -> bool:
        """Add the gradients of a batch; once the window is full, or this batch is the last one, step.

        Args:
            loss: The mean loss of the batch.
            divisor: The samples of the whole window over those of this batch; ``accumulation_steps`` by default.
            is_last: Whether no other batch will fill the window.
            loop: Whose hooks see the gradients before the step, and may have it left out.

        Returns:
            Whether the weights were stepped.
        """
        self.loss = value = loss.detach()
        if self.accumulation_steps == 1 and divisor is None:
            self._backward(loss)
            self._window_loss = value
            return self._step(loop)
        divisor = self.accumulation_steps if divisor is None else divisor
        self._backward(loss / divisor)
        part = value / divisor
        self._window_loss = part if self._window_loss is None else self._window_loss + part
        self.waiting += 1
        if self.waiting == self.accumulation_steps or is_last:
            return self._step(loop)
        return False

    def finish(self, loop: TrainingLoop | None = None) -> bool:
        """Step along what a window holds that nobody knew to be the last one."""
        if not self.waiting:
            return False
        correction = self.accumulation_steps / self.waiting  # each was divided by a full window
        for parameter in self._parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(correction)
        if self._window_loss is not None:
            self._window_loss = self._window_loss * correction
        return self._step(loop)

    def gradient_norm(self) -> Tensor:
        """Return the norm of all gradients; who asks before they are clipped spares the clipping the work."""
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        versions = [gradient._version for gradient in gradients]
        if self._norm is None or versions != self._normed:
            self._norm, self._normed = total_norm(gradients, is_uniform=self._is_uniform), versions
        return self._norm

    def read_norm(self) -> float:
        """Return the norm of all gradients as a number, before they are clipped: a wait for the device."""
        if self.max_grad_norm is None and self._is_uniform_on_cpu:
            gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
            self._norm_value = quick_norm(gradients)
        else:
            self._norm_value = self.gradient_norm().item()
        return self._norm_value

    def state_dict(self) -> dict[str, Plain]:
        """Return the steps taken, and the gradients of a window that is not full; the tensors are the live ones."""
        saved: dict[str, Plain] = {"steps": self.steps, "waiting": self.waiting, "norms": self.norms.state_dict()}
        if self.scaler is not None:
            saved["scaler"] = self.scaler.state_dict()
        if self.waiting:
            saved["window_loss"] = self._window_loss
            saved["gradients"] = {
                name: _save_gradient(parameter.grad)
                for name, parameter in self._model.named_parameters()
                if parameter.grad is not None
            }
        return saved

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.steps, self.waiting = saved["steps"], saved["waiting"]
        self.norms.load_state_dict(saved["norms"])
        self._window_loss = saved.get("window_loss")
        self._norm = None
        if self.scaler is not None and "scaler" in saved:
            self.scaler.load_state_dict(dict(saved["scaler"]))
        gradients = saved.get("gradients", {})
        for name, parameter in self._model.named_parameters():
            parameter.grad = _load_gradient(gradients[name], parameter) if name in gradients else None

    def _backward(self, loss: Tensor) -> None:
        if self.scaler is None:
            loss.backward()
        else:
            self.scaler.scale(loss).backward()
        if self._mean is not None:
            self._mean.share_buffers()

    def _step(self, loop: TrainingLoop | None) -> bool:
        loss, self._window_loss, self.waiting = self._window_loss, None, 0
        try:
            if self.factor is not None:
                self._set_rates(self.factor(self.steps))
            if self._mean is not None and loss is not None:
                loss = self._mean.take(loss)
            may_step = not self._has_overflown() and (loop is None or loop.gradients(loss))
            if may_step:
                self._clip()
                if self.scaler is None:
                    self.optimizer.step()
                else:
                    self.scaler.step(self.optimizer)
                self.steps += 1
                if loop is not None:
                    loop.optimizer_step()
        finally:
            if self.scaler is not None:
                self.scaler.update()
            self._norm = self._norm_value = None
            self._drop_gradients()  # also when a hook has stopped the run here: another may follow
        return may_step

    def _clip(self) -> None:
        if self.max_grad_norm is not None:
            norm = self.gradient_norm()
            self._scale_down(norm, self.max_grad_norm)
            self.norms.add(norm)
        elif self._norm_value is not None:
            self.norms.add_number(self._norm_value)

    def _scale_down(self, norm: Tensor, largest: float) -> None:
        if not self._is_uniform:
            clip_grads_with_norm_(self._parameters, largest, norm)
            return
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        if gradients:  # the same, without sorting them by device and type first
            share = (largest / (norm + 1e-6)).clamp_(max=1.0)
            torch._foreach_mul_(gradients, share)  # pyright: ignore[reportPrivateImportUsage]  # as torch does

    def _has_overflown(self) -> bool:
        """Undo the scaling, and tell whether it was too much: then this step is left out and the scale comes down."""
        if self.scaler is None:
            return False
        self.scaler.unscale_(self.optimizer)
        found = self.scaler._found_inf_per_device(self.optimizer)
        return any(bool(each.item()) for each in found.values())

    def _drop_gradients(self) -> None:
        if not self._drops_itself:
            self.optimizer.zero_grad()
            return
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def _set_rates(self, factor: float) -> None:
        for group, full in zip(self.optimizer.param_groups, self._full_rates, strict=True):
            group["lr"] = full * factor


def total_norm(gradients: list[Tensor], *, is_uniform: bool = False) -> Tensor:
    """Return the norm of all gradients together; the bits are those of ``torch.nn.utils.get_total_norm``.

    Args:
        gradients: All of them.
        is_uniform: Whether all are on one device and of one type, for who knows it already.
    """
    if not gradients:
        return torch.zeros(())
    if any(gradient.is_sparse for gradient in gradients):
        gradients = [gradient.coalesce().values() if gradient.is_sparse else gradient for gradient in gradients]
    if not is_uniform and len({(gradient.device, gradient.dtype) for gradient in gradients}) > 1:
        return get_total_norm(gradients)
    norms = torch._foreach_norm(gradients)  # pyright: ignore[reportPrivateImportUsage]  # as get_total_norm does
    return torch.linalg.vector_norm(torch.stack(norms))


def quick_norm(gradients: list[Tensor]) -> float:
    """Return the norm of all gradients, on one CPU and of one type: half the time of ``total_norm`` for small ones."""
    if any(gradient.is_sparse for gradient in gradients):
        return total_norm(gradients).item()
    norms = torch._foreach_norm(gradients) if gradients else ()  # pyright: ignore[reportPrivateImportUsage]
    return math.hypot(*[norm.item() for norm in norms])


def _save_gradient(gradient: Tensor | None) -> Plain:
    if gradient is None or not gradient.is_sparse:
        return gradient
    # As it is: adding up what stands twice would be another order of additions, and other bits.
    return {
        "indices": gradient._indices(), "values": gradient._values(), "is_coalesced": gradient.is_coalesced(),
    }  # fmt: skip


def _load_gradient(saved: Plain, parameter: Tensor) -> Tensor:
    if isinstance(saved, Mapping):
        indices, values = saved["indices"].to(parameter.device), saved["values"].to(parameter.device)
        return torch.sparse_coo_tensor(
            indices, values, parameter.shape, check_invariants=True, is_coalesced=saved["is_coalesced"]
        )
    return saved.to(parameter.device).clone()
