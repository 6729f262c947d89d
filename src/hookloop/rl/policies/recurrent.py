"""Networks with memory: a recurrent cell over any encoder.

Axes: T steps of a sequence, B environments, H units of the cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from hookloop.errors import ConfigError, did_you_mean
from hookloop.rl.config import GAUSSIAN, Exploration
from hookloop.rl.policies.cells import CELLS
from hookloop.rl.policies.encoded import ActorCriticHeads
from hookloop.rl.policies.encoders import Encoder, observation_encoder
from hookloop.rl.policies.stacked import Activation
from hookloop.rl.specs import ActionSpec, ObservationSpec

CellKind: TypeAlias = Literal["gru", "lstm"]


class RecurrentActorCritic(nn.Module):
    """An encoder, a recurrent cell that remembers what it saw, and the last layers for actions and values.

    The memory of B environments is one tensor: [B, H] for a GRU, [B, 2 H] (output, then cell) for an LSTM.

    Args:
        observation_spec: What the environment shows.
        action_spec: What the environment takes.
        cell: The kind of the cell.
        num_units: The width of the cell; that of the last hidden layer by default.
        encoder: Any encoder; by default the one that fits the observations.
        hidden: The widths of the default encoder's layers.
        activation: What stands between those layers.
        exploration: How the noise of continuous actions comes about.
        generator: The random stream of the first weights.
    """

    is_recurrent = True

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        *,
        cell: CellKind = "gru",
        num_units: int | None = None,
        encoder: Encoder | None = None,
        hidden: Sequence[int] = (64, 64),
        activation: Activation = "tanh",
        exploration: Exploration = GAUSSIAN,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if cell not in CELLS:
            raise ConfigError(f"There is no recurrent cell {cell!r}.{did_you_mean(cell, CELLS)}")
        self.encoder = encoder or observation_encoder(
            observation_spec, hidden=hidden, activation=activation, generator=generator
        )
        num_units = num_units or hidden[-1]
        self.cell = CELLS[cell](self.encoder.num_features, num_units, generator)
        self.exploration = exploration
        self.heads = ActorCriticHeads(num_units, action_spec, generator, exploration)

    @property
    def log_deviations(self) -> Tensor | None:
        """The logarithms of the deviations of continuous actions, or of their noise matrices' entries."""
        return self.heads.log_deviations

    def initial_state(self, num_envs: int) -> Tensor:
        """Return an empty memory [B, ...]."""
        weight = self.cell.from_memory.weight
        return torch.zeros(num_envs, self.cell.num_remembered, dtype=weight.dtype, device=weight.device)

    def forward(
        self, obs: Tensor | Mapping[str, Tensor], state: Tensor, starts: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return action parameters [T, B, P], values [T, B] and the memory after the last step."""
        steps, rows = starts.shape
        if isinstance(obs, Tensor):
            features = self.encoder(obs.flatten(0, 1))
        else:
            features = self.encoder({key: part.flatten(0, 1) for key, part in obs.items()})
        outputs, state = self.cell(features.view(steps, rows, -1), state, starts)
        return *self.heads(outputs), state
