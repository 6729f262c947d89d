"""One game at a time, one step at a time: what a loop of one's own calls, and what it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from hookloop.errors import ConfigError, HookloopError
from hookloop.rl.policies import Policy
from hookloop.rl.specs import Array
from hookloop.selfplay.games import GameEnvs

Log = Callable[[str], object]

MOST_FAILURES = 10


class RepeatedStepFailureError(HookloopError, RuntimeError):
    """So many steps failed one after the other that going on makes no sense."""


@dataclass(frozen=True, slots=True)
class EpisodeState:
    """Where a game stands."""

    current_obs: Array
    current_obs_tensor: Tensor
    episode_reward: float = 0.0
    """What the first seat has won so far."""
    episode_length: int = 0


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step has led to; after a failed one only ``error`` says anything."""

    success: bool
    done: bool = False
    reward: float = 0.0
    """What the seat that moved has won by it."""
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """At the end of a game: ``winner``, None without one, and ``outcome``."""
    next_obs: Array | None = None
    move: int | None = None
    log_prob: float = 0.0
    value: float = 0.0
    seat: int = 0
    error: BaseException | None = None


class Transition(NamedTuple):
    """One move, as it is learned from."""

    obs: Array
    mask: Array
    seat: int
    action: int
    log_prob: float
    value: float
    reward: float
    done: bool


class Buffer(Protocol):
    """Where moves are kept until they are learned from."""

    def add(self, transition: Transition) -> None:
        """Keep one move."""
        ...


class StepManager:
    """Makes the moves of one game after another; a step that fails costs its game, and never the run.

    Args:
        games: The game, as ``GameEnvs`` with one place.
        policy: What moves, in both seats.
        experience_buffer: Where the moves are kept.
        seat_names: What the seats are called in ``info["winner"]``.
        seed: The root of the moves' randomness.
        max_consecutive_failures: After more failed steps in a row than these, the last failure is raised.
    """

    def __init__(
        self,
        games: GameEnvs,
        policy: Policy,
        experience_buffer: Buffer,
        *,
        seat_names: tuple[str, str] = ("black", "white"),
        seed: int = 0,
        max_consecutive_failures: int = MOST_FAILURES,
    ) -> None:
        if games.num_envs != 1:
            raise ConfigError(f"A StepManager plays one game at a time, got GameEnvs with {games.num_envs} places.")
        self.games, self.policy, self.experience_buffer = games, policy, experience_buffer
        self.max_consecutive_failures = max_consecutive_failures
        self.consecutive_failures = 0
        self._winners = {"first_win": seat_names[0], "second_win": seat_names[1]}
        self._generator = torch.Generator().manual_seed(seed)
        games.reset(0)

    def execute_step(self, episode_state: EpisodeState, global_timestep: int, logger_func: Log) -> StepResult:
        """Make one move and keep it; a failure is told in the result, and raised if it is one too many."""
        try:
            result = self._move(episode_state)
        except (HookloopError, RuntimeError, ValueError) as error:
            return self._failed(error, global_timestep, logger_func)
        self.consecutive_failures = 0
        return result

    def update_episode_state(self, episode_state: EpisodeState, step_result: StepResult) -> EpisodeState:
        """Return where the game stands after a step."""
        gained = step_result.reward if step_result.seat == 0 else -step_result.reward
        return self._standing(episode_state.episode_reward + gained, episode_state.episode_length + 1)

    def handle_episode_end(
        self,
        episode_state: EpisodeState,
        step_result: StepResult,
        game_stats: Mapping[str, int],
        total_episodes_completed: int,
        logger_func: Log,
    ) -> EpisodeState:
        """Tell of a game that is over and return where the next one stands, which has begun by itself."""
        winner = step_result.info.get("winner") or "nobody"
        told = ", ".join(f"{name} {count}" for name, count in game_stats.items())
        logger_func(
            f"Game {total_episodes_completed + 1}: {winner} won after {episode_state.episode_length} moves ({told})."
        )
        return self._standing(0.0, 0)

    def reset_episode(self) -> EpisodeState:
        """Begin a new game, whatever has become of the one before."""
        self.games.abandon(0)
        return self._standing(0.0, 0)

    def _move(self, episode_state: EpisodeState) -> StepResult:
        games = self.games
        mask, seat = games.masks[0].copy(), int(games.seats[0])
        acted = self.policy.act(
            episode_state.current_obs_tensor, mask=torch.from_numpy(mask[None]), generator=self._generator
        )
        move, log_prob, value = int(acted.actions[0]), float(acted.log_probs[0]), float(acted.values[0])
        games.step(np.array([move]))
        reward, done = float(games.rewards[0]), bool(games.terminated[0] or games.truncated[0])
        obs = episode_state.current_obs
        self.experience_buffer.add(Transition(obs, mask, seat, move, log_prob, value, reward, done))
        return StepResult(
            True, done, reward, self._ending() if done else {}, games.planes[0].copy(), move, log_prob, value, seat
        )

    def _failed(self, error: Exception, global_timestep: int, logger_func: Log) -> StepResult:
        self.consecutive_failures += 1
        logger_func(f"The step after timestep {global_timestep} failed: {error}")
        if self.consecutive_failures > self.max_consecutive_failures:
            raise RepeatedStepFailureError(
                f"{self.consecutive_failures} steps failed one after the other, and at most "
                f"{self.max_consecutive_failures} may; the last one: {error}"
            ) from error
        return StepResult(False, error=error)

    def _ending(self) -> dict[str, Any]:
        infos = self.games.finished[0].infos
        outcome = next(name for name, value in infos.items() if value)
        return {"winner": self._winners.get(outcome), "outcome": outcome}

    def _standing(self, reward: float, length: int) -> EpisodeState:
        obs = self.games.planes[0].copy()
        return EpisodeState(obs, torch.from_numpy(obs[None]), reward, length)
