"""Several learners of one run: each has the gradients of its share of a batch, and all step along their mean."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hookloop.core import Ranks
from hookloop.errors import ConfigError


class GradientMean:
    """Averages gradients over ranks in one exchange, with the loss, and which parameters have one at all.

    Args:
        ranks: The learners.
        model: Whose running statistics, as those of a batch norm, main's are taken of.
        parameters: Whose gradients are averaged; all of one type, on one device.
    """

    def __init__(self, ranks: Ranks, model: nn.Module, parameters: Sequence[Tensor]) -> None:
        kinds = {(each.dtype, each.device) for each in parameters}
        if len(kinds) > 1:
            raise ConfigError(
                f"With several learners the parameters must share one dtype and device, got {sorted(map(str, kinds))}."
            )
        self._ranks = ranks
        self._parameters = list(parameters)
        self._buffers = [buffer for buffer in model.buffers() if buffer.numel()]
        count = sum(each.numel() for each in self._parameters)
        dtype, device = next(iter(kinds))
        # The gradients, then a 1 for each parameter that has one, then the loss.
        self._wire = torch.zeros(count + len(self._parameters) + 1, dtype=dtype, device=device)
        ends = torch.tensor([each.numel() for each in self._parameters]).cumsum(0).tolist()
        self._views = [
            self._wire[end - each.numel() : end].view_as(each)
            for end, each in zip(ends, self._parameters, strict=True)
        ]  # fmt: skip
        self._presence = self._wire[count:-1]

    def take(self, loss: Tensor) -> Tensor:
        """Replace the gradients by their mean over all ranks, and return that of the loss."""
        self._wire.zero_()
        for view, parameter in zip(self._views, self._parameters, strict=True):
            if parameter.grad is not None:
                _require_dense(parameter.grad)
                view.copy_(parameter.grad)
        here = [parameter.grad is not None for parameter in self._parameters]
        self._presence.copy_(torch.tensor(here, dtype=self._wire.dtype))
        self._wire[-1] = loss
        self._ranks.average(self._wire)
        # What no rank has used keeps no gradient, so that an optimizer leaves it alone as it does with one learner.
        for view, parameter, share in zip(self._views, self._parameters, self._presence.tolist(), strict=True):
            if share > 0:
                parameter.grad = view.clone() if parameter.grad is None else parameter.grad.copy_(view)
        return self._wire[-1].clone()

    @torch.no_grad()
    def share_buffers(self) -> None:
        """Take main's running statistics, after every batch: what is saved of the model is then the same everywhere."""
        if not self._buffers:
            return
        own = [buffer.detach().cpu().contiguous().view(-1).view(torch.uint8) for buffer in self._buffers]
        content = self._ranks.broadcast(torch.cat(own).numpy().tobytes())
        if self._ranks.rank == 0:
            return
        mains = torch.frombuffer(bytearray(content), dtype=torch.uint8).split([len(each) for each in own])
        for buffer, main in zip(self._buffers, mains, strict=True):
            buffer.copy_(main.clone().view(buffer.dtype).view_as(buffer))


def _require_dense(gradient: Tensor) -> None:
    if gradient.is_sparse:
        raise ConfigError("Sparse gradients cannot be averaged over learners; make the embedding with sparse=False.")
