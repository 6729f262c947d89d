"""Recurrent cells over sequences in which episodes begin, each sequence one node of the autograd graph.

Torch's own cells cannot empty the memory of one row in the middle of a sequence. Here, what depends on the inputs alone
is computed for all steps at once, and so is everything on the way back that does not depend on the step after: a step
back is five to seven operations. Axes: T steps, B rows, H units, G gates.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from hookloop.rl.policies.initial import begin_orthogonal, linear


class Cell(nn.Module):
    """A recurrent cell; its memory is a tensor [B, num_remembered] that begins with the last output."""

    num_gates: int
    num_parts: int

    def __init__(self, num_inputs: int, num_units: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.num_units = num_units
        self.num_remembered = self.num_parts * num_units
        self.from_input = linear(num_inputs, self.num_gates * num_units, 1.0, generator)
        self.from_memory = linear(num_units, self.num_gates * num_units, 1.0, generator)
        # What each gate sees of the memory is turned, neither stretched nor shrunk.
        for gate in self.from_memory.weight.detach().split(num_units, 0):
            begin_orthogonal(gate, 1.0, generator)

    def forward(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Run over inputs [T, B, ...], emptying the memory at ``starts`` [T, B]; return outputs [T, B, H], memory."""
        raise NotImplementedError


class GruCell(Cell):
    """A gated recurrent unit, with the equations and the order of gates of ``torch.nn.GRU``."""

    num_gates = 3
    num_parts = 1

    def forward(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Run over a sequence."""
        going_on = (~starts).to(inputs.dtype).unsqueeze(-1)
        memory = self.from_memory
        outputs: Tensor = _Gru.apply(self.from_input(inputs), memory.weight, memory.bias, state, going_on)  # type: ignore[assignment]  # torch types apply as Any
        return outputs, outputs[-1]


class LstmCell(Cell):
    """A long short-term memory, with the equations and the order of gates of ``torch.nn.LSTM``."""

    num_gates = 4
    num_parts = 2

    def forward(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Run over a sequence."""
        going_on = (~starts).to(inputs.dtype).unsqueeze(-1)
        gates = self.from_input(inputs) + self.from_memory.bias
        output, cell = state.split(self.num_units, 1)
        outputs, cell = _Lstm.apply(gates, self.from_memory.weight, output, cell, going_on)  # type: ignore[misc]  # as above
        return outputs, torch.cat((outputs[-1], cell), 1)


class _Gru(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates_TBG: Tensor, weight: Tensor, bias: Tensor, state: Tensor, going_on_TB1: Tensor
    ) -> Tensor:
        units = state.shape[1]
        seen_TBG = torch.empty_like(gates_TBG)
        switches = gates_TBG.new_empty((*gates_TBG.shape[:2], 2 * units))
        proposed, before, outputs = (gates_TBG.new_empty((*gates_TBG.shape[:2], units)) for _ in range(3))
        for step, gates in enumerate(gates_TBG):
            torch.mul(state, going_on_TB1[step], out=before[step])
            seen = torch.addmm(bias, before[step], weight.t(), out=seen_TBG[step])
            torch.add(gates[:, : 2 * units], seen[:, : 2 * units], out=switches[step]).sigmoid_()
            reset, update = switches[step].split(units, 1)
            torch.addcmul(gates[:, 2 * units :], reset, seen[:, 2 * units :], out=proposed[step]).tanh_()
            state = torch.lerp(proposed[step], before[step], update, out=outputs[step])
        ctx.save_for_backward(weight, seen_TBG, switches, proposed, before, going_on_TB1)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outputs_grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]  # torch types it with *args
        weight, seen_TBG, switches, proposed, before, going_on_TB1 = ctx.saved_tensors
        units = weight.shape[1]
        reset, update = switches.split(units, 2)
        # How the gates' inputs answer to the output of their own step.
        to_proposed = _tanh_back(1 - update, proposed)
        slopes = seen_TBG.new_empty((*seen_TBG.shape[:2], 3, units))
        _sigmoid_back_into(slopes[:, :, 0], seen_TBG[..., 2 * units :] * to_proposed, reset)
        _sigmoid_back_into(slopes[:, :, 1], before - proposed, update)
        torch.mul(to_proposed, reset, out=slopes[:, :, 2])
        seen_grad = torch.empty_like(slopes)
        output_grads = torch.empty_like(proposed)
        carried = torch.zeros_like(proposed[0])
        for step in reversed(range(len(outputs_grad))):
            here = torch.add(outputs_grad[step], carried, out=output_grads[step])
            torch.mul(here.unsqueeze(1), slopes[step], out=seen_grad[step])
            through_gates = seen_grad[step].view(-1, 3 * units)
            carried = torch.addmm(here * update[step], through_gates, weight).mul_(going_on_TB1[step])
        flat = seen_grad.view(-1, 3 * units)
        weight_grad, bias_grad = flat.t() @ before.view(-1, units), flat.sum(0)
        # The proposal alone hears the inputs and the memory differently; the other gates add them up.
        torch.mul(output_grads, to_proposed, out=seen_grad[:, :, 2])
        return seen_grad.flatten(2), weight_grad, bias_grad, carried, None


class _Lstm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gates_TBG: Tensor, weight: Tensor, output: Tensor, cell: Tensor, going_on_TB1: Tensor
    ) -> tuple[Tensor, Tensor]:
        units = output.shape[1]
        gates_TBG = gates_TBG.clone()
        before, cells_before, outputs, shown = (gates_TBG.new_empty((*gates_TBG.shape[:2], units)) for _ in range(4))
        for step, gates in enumerate(gates_TBG):
            torch.mul(output, going_on_TB1[step], out=before[step])
            torch.mul(cell, going_on_TB1[step], out=cells_before[step])
            gates.addmm_(before[step], weight.t())
            gates[:, : 2 * units].sigmoid_()
            gates[:, 2 * units : 3 * units].tanh_()
            gates[:, 3 * units :].sigmoid_()
            admit, forget, proposed, show = gates.split(units, 1)
            cell = torch.mul(forget, cells_before[step]).addcmul_(admit, proposed)
            output = torch.mul(show, torch.tanh(cell, out=shown[step]), out=outputs[step])
        ctx.save_for_backward(weight, gates_TBG, before, cells_before, shown, going_on_TB1)
        return outputs, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outputs_grad: Tensor, cell_grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]  # torch types it with *args
        weight, gates_TBG, before, cells_before, shown, going_on_TB1 = ctx.saved_tensors
        units = weight.shape[1]
        admit, forget, proposed, show = gates_TBG.split(units, 2)
        # How the gates' inputs answer to the cell and to the output of their own step.
        slopes = gates_TBG.new_empty((*gates_TBG.shape[:2], 3, units))
        _sigmoid_back_into(slopes[:, :, 0], proposed, admit)
        _sigmoid_back_into(slopes[:, :, 1], cells_before, forget)
        torch.ops.aten.tanh_backward.grad_input(admit, proposed, grad_input=slopes[:, :, 2])
        to_show = torch.ops.aten.sigmoid_backward(shown, show)
        to_cell = _tanh_back(show, shown)
        kept = forget * going_on_TB1
        gates_grad = gates_TBG.new_empty((*gates_TBG.shape[:2], 4, units))
        carried = torch.zeros_like(outputs_grad[0])
        for step in reversed(range(len(outputs_grad))):
            here = outputs_grad[step] + carried
            in_cell = torch.addcmul(cell_grad, here, to_cell[step])
            torch.mul(in_cell.unsqueeze(1), slopes[step], out=gates_grad[step, :, :3])
            torch.mul(here, to_show[step], out=gates_grad[step, :, 3])
            carried = (gates_grad[step].view(-1, 4 * units) @ weight).mul_(going_on_TB1[step])
            cell_grad = in_cell.mul_(kept[step])
        flat = gates_grad.view(-1, 4 * units)
        return gates_grad.flatten(2), flat.t() @ before.view(-1, units), carried, cell_grad, None


def _tanh_back(grad: Tensor, result: Tensor) -> Tensor:
    return torch.ops.aten.tanh_backward(grad, result)


def _sigmoid_back_into(out: Tensor, grad: Tensor, result: Tensor) -> None:
    torch.ops.aten.sigmoid_backward.grad_input(grad, result, grad_input=out)


CELLS: dict[str, type[Cell]] = {"gru": GruCell, "lstm": LstmCell}
