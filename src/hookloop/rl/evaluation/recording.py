"""What happens in an episode, step by step: what was seen, thought, done and given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hookloop.evaluation.results import EpisodeRecord
from hookloop.rl.actions import Categorical, MultiCategorical
from hookloop.rl.envs import Envs, SyncEnvs
from hookloop.rl.policies import Policy
from hookloop.rl.policies.base import Acted, Obs, State
from hookloop.rl.specs import Array

MOST_BYTES = 64_000_000
"""In memory, for one episode; the steps after that are counted and not kept."""

OBSERVATIONS, ACTIONS, REWARDS, VALUES, PROBABILITIES = "observations", "actions", "rewards", "values", "probabilities"
CHOSEN, FRAMES, BOARDS = "chosen_probabilities", "frames", "boards"
LOG_PROBS = "log_probs"


@dataclass(slots=True)
class _Tape:
    """The steps of one slot so far."""

    rows: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    bytes: int = 0

    @property
    def is_full(self) -> bool:
        return self.bytes > MOST_BYTES

    def add(self, name: str, row: Any) -> None:
        kept = np.array(row)  # a copy: environments and policies write their arrays over
        self.rows.setdefault(name, []).append(kept)
        self.bytes += kept.nbytes


class Recorder:
    """Records the first episodes of some slots; the environments are those without normalisation around them."""

    def __init__(self, policy: Policy, envs: Envs, slots: Collection[int]) -> None:
        self._policy, self._envs = policy, envs
        self._tapes = {slot: _Tape() for slot in slots}
        self._draws = _drawing(envs) if slots else None

    def look(self, obs: Obs, mask: Tensor | None, state: State | None, playing: Collection[int]) -> None:
        """Take what the policy is about to act on, and what it thinks of it."""
        tapes = self._recording(playing)
        if not tapes:
            return
        probabilities = self._probabilities(obs, mask, state)
        for slot, tape in tapes.items():
            self._see(tape, self._envs.obs, slot)
            if probabilities is not None:
                tape.add(PROBABILITIES, probabilities[slot])
            if self._draws is not None:
                name, draw = self._draws
                tape.add(name, draw(slot))

    def act(self, acted: Acted, playing: Collection[int]) -> None:
        """Take what the policy did."""
        for slot, tape in self._recording(playing).items():
            tape.add(ACTIONS, acted.actions[slot].numpy())
            tape.add(VALUES, acted.values[slot].numpy())
            tape.add(CHOSEN, acted.log_probs[slot].exp().numpy())

    def reward(self, playing: Collection[int]) -> None:
        """Take what the environment gave."""
        for slot, tape in self._recording(playing).items():
            tape.add(REWARDS, self._envs.rewards[slot])

    def finish(self, slot: int, about: Mapping[str, Any]) -> EpisodeRecord | None:
        """Return the record of an episode that has just ended; None if it was not recorded."""
        tape = self._tapes.pop(slot, None)
        if tape is None:
            return None
        if not tape.is_full:
            self._see(tape, self._envs.final_obs, slot)
        steps = len(tape.rows[REWARDS])
        arrays = {name: np.stack(rows) for name, rows in tape.rows.items() if name != BOARDS}
        if BOARDS in tape.rows:
            arrays[BOARDS] = _joined_texts(tape.rows[BOARDS])
        kept = {name: array[: steps + 1 if name.startswith(OBSERVATIONS) else steps] for name, array in arrays.items()}
        who = getattr(self._envs, "who", type(self._envs).__name__)
        return EpisodeRecord(kept, {"environment": who, **about, "recorded_steps": steps})

    def _recording(self, playing: Collection[int]) -> dict[int, _Tape]:
        return {slot: tape for slot, tape in self._tapes.items() if slot in playing and not tape.is_full}

    def _see(self, tape: _Tape, observations: Any, slot: int) -> None:
        if isinstance(observations, dict):
            for name, values in observations.items():
                tape.add(f"{OBSERVATIONS}/{name}", values[slot])
        else:
            tape.add(OBSERVATIONS, observations[slot])

    def _probabilities(self, obs: Obs, mask: Tensor | None, state: State | None) -> Array | None:
        head = self._policy.head
        if not isinstance(head, Categorical | MultiCategorical):
            return None
        with torch.no_grad():
            logits = self._parameters(obs, state)
            if mask is not None:
                logits = logits.masked_fill(~mask, -torch.inf)
            parts = logits.split(head.nvec, 1) if isinstance(head, MultiCategorical) else (logits,)
            return torch.cat([torch.softmax(part, 1) for part in parts], 1).numpy()

    def _parameters(self, obs: Obs, state: State | None) -> Tensor:
        if state is None:
            return self._policy.forward(obs)[0]
        sequence = (
            obs.unsqueeze(0) if isinstance(obs, Tensor) else {key: part.unsqueeze(0) for key, part in obs.items()}
        )
        starts = torch.zeros((1, self._envs.num_envs), dtype=torch.bool)
        return self._policy.unroll(sequence, state, starts)[0]


class TransitionRecorder(Recorder):
    """Records what a trainer learns from, and nothing that is only shown."""

    def look(self, obs: Obs, mask: Tensor | None, state: State | None, playing: Collection[int]) -> None:
        """Take what the policy is about to act on."""
        for slot, tape in self._recording(playing).items():
            self._see(tape, self._envs.obs, slot)

    def act(self, acted: Acted, playing: Collection[int]) -> None:
        """Take what the policy did."""
        for slot, tape in self._recording(playing).items():
            tape.add(ACTIONS, acted.actions[slot].numpy())
            tape.add(VALUES, acted.values[slot].numpy())
            tape.add(LOG_PROBS, acted.log_probs[slot].numpy())


def _drawing(envs: Envs) -> tuple[str, Any] | None:
    """Return how to draw an environment, if they were made to be drawn."""
    if not isinstance(envs, SyncEnvs):
        return None
    mode = envs.envs[0].render_mode
    if mode == "rgb_array":
        return FRAMES, lambda slot: envs.envs[slot].render()
    if mode == "ansi":
        return BOARDS, lambda slot: np.frombuffer(str(envs.envs[slot].render()).encode(), np.uint8)
    return None


def _joined_texts(texts: list[Array]) -> Array:
    """Return texts as one array [T, L] of UTF-8, the short ones filled up with zeros."""
    joined = np.zeros((len(texts), max(text.size for text in texts)), np.uint8)
    for row, text in zip(joined, texts, strict=True):
        row[: text.size] = text
    return joined
