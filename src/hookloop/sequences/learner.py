"""Learning from groups of completions: minibatches, losses, the optimizer and the reference."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hookloop.core import TrainingLoop
from hookloop.core.state import TrainerState
from hookloop.rl.optimizer import FlatAdam
from hookloop.sequences.experience import SequenceMinibatch, Sequences, token_log_probs
from hookloop.sequences.losses.base import SequenceLoss
from hookloop.supervised.models.gpt import GPT

Plain = Any


class SequenceLearner:
    """Improves a model on completions.

    Args:
        model: What learns.
        losses: What to minimise, in order.
        optimizer: Steps along the gradients.
        generator: The random stream that shuffles groups.
        update_epochs: Passes over the groups of an epoch.
        minibatch_groups: Groups per optimizer step.
        temperature: What was drawn with.
        refresh_reference_every: Epochs after which the reference becomes the model as it is; None leaves it as the
            model was at the start.
    """

    def __init__(
        self,
        model: GPT,
        losses: Sequence[SequenceLoss],
        optimizer: FlatAdam,
        *,
        generator: torch.Generator,
        update_epochs: int = 1,
        minibatch_groups: int = 32,
        temperature: float = 1.0,
        refresh_reference_every: int | None = None,
    ) -> None:
        self.model, self.losses, self.optimizer, self.generator = model, losses, optimizer, generator
        self.update_epochs = update_epochs
        self.minibatch_groups = minibatch_groups
        self.temperature = temperature
        self.refresh_reference_every = refresh_reference_every
        self.reference = _frozen(model) if any(loss.needs_reference for loss in losses) else None

    def needs_examples(self, state: TrainerState) -> bool:
        """Tell whether a loss learns from right answers now."""
        return any(loss.needs_examples and loss.is_training(state) for loss in self.losses)

    def learn(self, loop: TrainingLoop, sequences: Sequences) -> dict[str, float]:
        """Optimise on what was drawn and return the mean statistics of every loss."""
        self._refresh_reference(loop.state)
        with loop.train_phase():
            open_losses = [loss for loss in self.losses if loss.is_training(loop.state)]
            wanted = {loss.name: loss.groups(sequences) for loss in open_losses}
            advantages = {loss.name: loss.advantages(sequences.rewards) for loss in open_losses}
            drawn_G = _any([wanted[loss.name] for loss in open_losses if not loss.needs_examples], sequences)
            self._ask_reference(open_losses, sequences)
            chosen = torch.nonzero(_any(list(wanted.values()), sequences))[:, 0]
            for _ in range(self.update_epochs):
                if loop.state.stop_update_epoch:
                    break
                order = chosen[torch.randperm(len(chosen), generator=self.generator)]
                for groups in order.split(self.minibatch_groups) if len(order) else ():
                    drawn = groups[drawn_G[groups]]
                    minibatch = SequenceMinibatch(self.model, sequences, groups, drawn, advantages, self.temperature)
                    self._train_on(minibatch, loop)
                    if loop.state.stop_update_epoch:
                        break
                loop.update_epoch_done()
        found = {"groups/learned": len(chosen) / len(drawn_G)}
        for loss in self.losses:
            found |= {f"{loss.name}/{name}": value for name, value in loss.statistics.means().items()}
        return found

    def state_dict(self) -> dict[str, Plain]:
        """Return weights, optimizer, reference, random stream and losses; the tensors are the live ones."""
        return {
            "model": dict(self.model.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "reference": {} if self.reference is None else dict(self.reference.state_dict()),
            "generator": self.generator.get_state(),
            "losses": {loss.name: loss.state_dict() for loss in self.losses},
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        if self.reference is not None:
            self.reference.load_state_dict(saved["reference"])
        for loss in self.losses:
            loss.load_state_dict(saved["losses"][loss.name])

    def _refresh_reference(self, state: TrainerState) -> None:
        every, epochs = self.refresh_reference_every, state.clocks.epochs
        if self.reference is not None and every is not None and epochs and epochs % every == 0:
            self.reference.load_state_dict(self.model.state_dict())

    @torch.no_grad()
    def _ask_reference(self, losses: Sequence[SequenceLoss], sequences: Sequences) -> None:
        if self.reference is not None and any(loss.needs_reference for loss in losses):
            sequences.reference = token_log_probs(self.reference, sequences.tokens, sequences.mask, self.temperature)

    def _train_on(self, minibatch: SequenceMinibatch, loop: TrainingLoop) -> None:
        loop.minibatch_start(minibatch)
        total: Tensor | None = None
        for loss in self.losses:
            part = loss.train(minibatch, loop.state)
            if part.requires_grad:
                total = part if total is None else total + part
        if total is not None:
            total.backward()
            total = total.detach()
            self._step(total, loop)
        loop.minibatch_end(total)

    def _step(self, total: Tensor, loop: TrainingLoop) -> None:
        try:
            if loop.gradients(total):
                self.optimizer.clip()
                self.optimizer.step()
                loop.optimizer_step()
        finally:
            self.optimizer.zero_grad()  # also when a hook has stopped the run here: another may follow


def _any(masks_G: Sequence[Tensor], sequences: Sequences) -> Tensor:
    none = torch.zeros(len(sequences.rewards), dtype=torch.bool)
    return torch.stack([none, *masks_G]).any(dim=0)


def _frozen(model: GPT) -> GPT:
    return copy.deepcopy(model).eval().requires_grad_(False)
