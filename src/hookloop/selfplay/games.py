"""Many games at once, as environments: each step is one move in every game, by whoever is to move there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from random import Random
from typing import Any, NamedTuple

import numpy as np

from hookloop.errors import ConfigError
from hookloop.rl.envs.arrays import Capture, EnvArrays
from hookloop.rl.envs.base import EnvState
from hookloop.rl.envs.errors import ActionMismatchError, EnvStateError
from hookloop.rl.specs import Array, ArraySpec, DiscreteActions, ObservationSpec
from hookloop.selfplay.library import State, load_game
from hookloop.selfplay.observing import Observer
from hookloop.selfplay.tally import Outcome, Tally, as_numbers, outcome_of


class EndedGame(NamedTuple):
    """A game that has ended."""

    state: State
    """Its last position, and all moves."""
    outcome: Outcome
    played: int
    """How many of its moves are the players'; those before them were drawn, as ``opening_moves`` says."""


class GameEnvs(EnvArrays):
    """Steps N games of OpenSpiel together; satisfies ``hookloop.rl.envs.Envs``, with seats besides.

    What is shown and given belongs to the seat that moves: ``obs`` and ``action_masks`` are those of the seat in
    ``seats``, ``rewards`` are what the seat that moved has won by it. ``final_obs`` is what the next seat, in
    ``final_seats``, would have seen. The return of an episode is the first seat's.

    Args:
        game: The game's name in OpenSpiel, such as ``"connect_four"``.
        num_envs: Games at once.
        max_moves: A game is cut off after so many moves, without a winner; None leaves it to the game's own rules.
        opening_moves: Each game begins with up to so many moves at random, so that many positions are met. They belong
            to nobody, and are in no episode.
    """

    def __init__(self, game: str, num_envs: int, *, max_moves: int | None = None, opening_moves: int = 0) -> None:
        if max_moves is not None and max_moves < 1:
            raise ConfigError(f"max_moves must be at least 1, or None, got {max_moves}.")
        if opening_moves < 0:
            raise ConfigError(f"opening_moves must be at least 0, got {opening_moves}.")
        self.game = load_game(game)
        self._observer = Observer(self.game)
        self.num_moves: int = self.game.num_distinct_actions()
        super().__init__(
            num_envs=num_envs,
            observation=ObservationSpec.single(ArraySpec(self._observer.shape, "float32")),
            action=DiscreteActions(self.num_moves),
            who=str(self.game),
        )
        self.max_moves = max_moves
        self.opening_moves = opening_moves
        self._opening_seed, self._games_begun = 0, 0
        self.planes: Array = self._obs_leaves[0]
        """The observations, which for a game are one array; after ``show_next_in`` it is another one."""
        self._final_planes: Array = self._final_leaves[0]
        self.masks = np.zeros((num_envs, self.num_moves), dtype=bool)
        self.action_masks = self.masks
        self._own_memory = self._next_memory = (self.planes, self.masks)
        self.seats = np.zeros(num_envs, dtype=np.int8)
        """Who moves next: 0 the first seat, 1 the second."""
        self.final_seats = np.zeros(num_envs, dtype=np.int8)
        self.tally = Tally()
        self.states: list[State] = [self.game.new_initial_state() for _ in range(num_envs)]
        """The positions, as OpenSpiel has them: for looking at, not for moving."""
        self.last_ended: EndedGame | None = None
        """The game that ended last; for looking at, and not saved."""
        self._rows = np.arange(num_envs)
        self._first_places = self._rows * self.num_moves
        self._mover_rewards = np.zeros(num_envs, dtype=np.float32)
        self._first_row = self._first_position()

    def step(self, actions: Array) -> None:
        """Make one move in every game."""
        if self._steps_to_check > 0:
            self._begin_checked_step(actions)
        self._require_legal(actions)
        self._change_memory()
        self.terminated.fill(False)
        self.truncated.fill(False)
        self._raw_rewards.fill(0.0)
        self._mover_rewards.fill(0.0)
        legal: list[Sequence[int]] = []
        for row, (state, action) in enumerate(zip(self.states, actions.tolist(), strict=True)):
            state.apply_action(action)
            if state.is_terminal():
                legal.append(self._end(row, state, is_cut_off=False))
            elif self.max_moves is not None and self.episode_lengths[row] + 1 >= self.max_moves:
                legal.append(self._end(row, state, is_cut_off=True))
            else:
                legal.append(self._show(row, state))
        self._allow(legal)
        self._note_ends()
        self._settle()
        # What a move has won is the mover's; only the sums of whole games are the first seat's.
        np.copyto(self.rewards, self._mover_rewards)

    def show_next_in(self, planes: Array, masks: Array) -> None:
        """Have the next step write into these arrays, which ``obs`` and ``action_masks`` are then.

        It spares a copy for who keeps every step, such as a row of the experience. It holds for one step.
        """
        self._next_memory = (planes, masks)

    def abandon(self, row: int) -> None:
        """Begin a new game in place of one that is not played to its end, and counts for nothing."""
        self.episode_returns[row] = 0.0
        self.episode_lengths[row] = 0
        legal = self._begin(row)
        self.masks[row] = False
        self.masks[row, legal] = True

    def history(self, row: int) -> list[int] | None:
        """Return the moves of a game so far; None once the games are closed."""
        return self.states[row].history() if row < len(self.states) else None

    def close(self) -> None:
        """Forget the games."""
        self.states = []

    def _reset(self, seed: int) -> None:
        self.states = [self.game.new_initial_state() for _ in range(self.num_envs)]
        self.tally = Tally()
        self.final_seats.fill(0)
        self._opening_seed, self._games_begun = seed, 0
        self._allow([self._begin(row) for row in range(self.num_envs)])

    def _change_memory(self) -> None:
        self.planes, self.masks = self._next_memory
        self.obs, self._obs_leaves[0], self.action_masks = self.planes, self.planes, self.masks
        self._next_memory = self._own_memory

    def _allow(self, legal: Sequence[Sequence[int]]) -> None:
        """Write the masks of all games, at once: for each game the moves that are legal."""
        counts = np.fromiter(map(len, legal), np.int64, self.num_envs)
        places = np.fromiter(chain.from_iterable(legal), np.int64, int(counts.sum()))
        places += np.repeat(self._first_places, counts)
        self.masks.fill(False)
        self.masks.reshape(-1)[places] = True

    def _require_legal(self, actions: Array) -> None:
        legal = self.masks[self._rows, actions]
        if not legal.all():
            row = int(np.flatnonzero(~legal)[0])
            raise ActionMismatchError(
                f"{self.who} was given the move {actions[row]} in game {row}, where it is not legal; choose among "
                "the actions that action_masks allows."
            )

    def _end(self, row: int, state: State, *, is_cut_off: bool) -> Sequence[int]:
        """Close a game and begin another in its place; return what is legal in that."""
        if is_cut_off:
            self.truncated[row] = True
            self._show(row, state)
            self._final_planes[row] = self.planes[row]
            self.final_seats[row] = self.seats[row]
            first_return = 0.0
        else:
            self.terminated[row] = True
            first_return = state.returns()[0]
            seat = self.seats[row]
            self.final_seats[row] = 1 - seat
            self._observer.write(state, 1 - int(seat), self._final_planes[row])
            self._raw_rewards[row] = first_return
            self._mover_rewards[row] = first_return if seat == 0 else -first_return
        outcome = outcome_of(first_return, is_cut_off=is_cut_off)
        self.tally.add(outcome)
        self._end_infos[row] = as_numbers(outcome)
        self.last_ended = EndedGame(state, outcome, int(self.episode_lengths[row]) + 1)
        return self._begin(row)

    def _show(self, row: int, state: State) -> Sequence[int]:
        """Write what the seat to move sees, and return what it may do."""
        seat = state.current_player()
        self.seats[row] = seat
        self._observer.write(state, seat, self.planes[row])
        return state.legal_actions()

    def _begin(self, row: int) -> Sequence[int]:
        """Begin a game and return what is legal in it."""
        state = self.states[row] = self.game.new_initial_state()
        if self.opening_moves:
            # What is drawn depends on how many games there were, and so needs no stream that is saved.
            self._games_begun += 1
            random = Random(f"{self._opening_seed} {self._games_begun}")
            for _ in range(random.randint(0, self.opening_moves)):
                after = state.child(random.choice(state.legal_actions()))
                if after.is_terminal():
                    break
                state = self.states[row] = after
            return self._show(row, state)
        # What every game begins with takes no asking.
        self.planes[row], self.seats[row], legal = self._first_row
        return legal

    def _first_position(self) -> tuple[Array, int, Sequence[int]]:
        legal = self._show(0, self.states[0])
        return self.planes[0].copy(), int(self.seats[0]), legal

    def _capture(self) -> Capture:
        histories = [state.history() for state in self.states]
        return Capture({
            "moves": np.array([move for history in histories for move in history], dtype=np.int64),
            "lengths": np.array([len(history) for history in histories], dtype=np.int64),
            "tally": self.tally.state_dict(),
            "openings": [self._opening_seed, self._games_begun],
        })  # fmt: skip

    def _restore(self, state: EnvState) -> None:
        """Play every game again to where it was: repetitions and other rules about the past hold on."""
        moves, lengths = np.asarray(state["moves"]), np.asarray(state["lengths"])
        if lengths.shape != (self.num_envs,) or (lengths < 0).any() or moves.shape != (int(lengths.sum()),):
            raise EnvStateError("The saved games are damaged: their moves do not add up; use another checkpoint.")
        rest = iter(moves.tolist())
        self.states = [self._played([next(rest) for _ in range(length)]) for length in lengths.tolist()]
        self.tally.load_state_dict(state["tally"])
        self._opening_seed, self._games_begun = state["openings"]

    def _played(self, moves: list[int]) -> State:
        state = self.game.new_initial_state()
        for move in moves:
            if state.is_terminal() or move not in state.legal_actions():
                raise EnvStateError(
                    f"A saved game of {self.who} has the move {move} where it is not legal; use another checkpoint."
                )
            state.apply_action(move)
        return state

    def _saved_arrays(self) -> dict[str, Array]:
        return {**super()._saved_arrays(), "seats": self.seats, "final_seats": self.final_seats}

    def _made_of(self) -> Mapping[str, Any]:  # type: ignore[override]  # read only
        return {**super()._made_of(), "max_moves": self.max_moves, "opening_moves": self.opening_moves}
