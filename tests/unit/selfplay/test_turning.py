"""Positions as seen by who moves: twins, with the seats exchanged, look alike and are played alike."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.cli.changes import changes_between
from hookloop.config.overrides import apply_overrides
from hookloop.errors import ConfigError
from hookloop.recipes import find_recipe
from hookloop.rl.policies import Policy
from hookloop.selfplay import GameEnvs, NetworkConfig, SelfPlayConfig, build_policy
from hookloop.selfplay.library import load_game
from hookloop.selfplay.observing import Observer
from hookloop.selfplay.turning import Turning

REPETITIONS = {"shogi": 29, "chess": 13}
SHOGI_FILES, SHOGI_RANKS = str.maketrans("123456789", "987654321"), str.maketrans("abcdefghi", "ihgfedcba")
CHESS_RANKS = str.maketrans("12345678", "87654321")


def shogi_twin(text: str) -> str:
    """Return the same position with the seats exchanged, and the board turned by 180 degrees."""
    board, mover, hands, number = text.split()
    pieces = re.findall(r"\+?.", board)[::-1]
    return " ".join(("".join(pieces).swapcase(), "wb"[mover == "w"], hands.swapcase(), number))


def shogi_move_twin(text: str) -> str:
    squares = re.compile(r"([1-9])([a-i])")
    return squares.sub(lambda found: found[1].translate(SHOGI_FILES) + found[2].translate(SHOGI_RANKS), text)


def chess_twin(text: str) -> str:
    """Return the same position with the colours exchanged, and the board turned upside down."""
    board, mover, castling, en_passant, *counts = text.split()
    rows = "/".join(board.swapcase().split("/")[::-1])
    rights = "".join(sorted(castling.swapcase()))
    return " ".join((rows, "wb"[mover == "w"], rights, en_passant.translate(CHESS_RANKS), *counts))


def chess_move_twin(text: str) -> str:
    return text.translate(CHESS_RANKS)


TWINS: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "shogi": (shogi_twin, shogi_move_twin),
    "chess": (chess_twin, chess_move_twin),
}


class Pairs(NamedTuple):
    """Positions that were reached by legal moves, and their twins."""

    obs: torch.Tensor
    twin_obs: torch.Tensor
    moves: list[list[tuple[int, int]]]
    """The legal actions of each position, and the twin's action for the same move."""


@cache
def pairs(name: str, *, games: int = 8, plies: int = 160) -> Pairs:
    """Play games at random and return every seventh position, without those that have occurred before."""
    game, draw = load_game(name), random.Random(0)
    observer, (twin_of, move_twin_of) = Observer(game), TWINS[name]
    seen: list[tuple[Any, Any]] = []
    moves: list[list[tuple[int, int]]] = []
    for _ in range(games):
        state = game.new_initial_state()
        for ply in range(plies):
            if state.is_terminal():
                break
            if ply % 7 == 0:
                twin = game.new_initial_state(twin_of(str(state)))
                rows = observed(observer, state), observed(observer, twin)
                if np.array_equal(*(row[REPETITIONS[name]] for row in rows)):
                    actions = {twin.action_to_string(action): action for action in twin.legal_actions()}
                    texts = {action: move_twin_of(state.action_to_string(action)) for action in state.legal_actions()}
                    assert sorted(texts.values()) == sorted(actions), f"the same moves are legal: {state}"
                    seen.append(rows)
                    moves.append([(action, actions[text]) for action, text in texts.items()])
            state.apply_action(draw.choice(state.legal_actions()))
    one, other = (torch.from_numpy(np.stack(rows)) for rows in zip(*seen, strict=True))
    return Pairs(one, other, moves)


def observed(observer: Observer, state: Any) -> np.ndarray[Any, Any]:
    row = np.zeros(observer.shape, dtype=np.float32)
    observer.write(state, state.current_player(), row)
    return row


def network(game: str, *, from_mover: bool = True) -> Policy:
    """Return a policy whose weights are all drawn, so that nothing is zero or nearly so."""
    config = NetworkConfig(blocks=2, channels=8, from_mover=from_mover)
    policy, generator = build_policy(config, GameEnvs(game, 1)), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.normal_(std=weight[0].numel() ** -0.5 if weight.ndim > 1 else 0.3, generator=generator)
    return policy


@pytest.mark.parametrize("game", TWINS)
def test_twins_are_seen_alike(game: str) -> None:
    found, turning = pairs(game), network(game).network.turning
    assert isinstance(turning, Turning)

    seen, is_turned = turning(found.obs)
    twin_seen, twin_is_turned = turning(found.twin_obs)

    assert torch.equal(seen, twin_seen)
    assert torch.equal(is_turned, ~twin_is_turned)
    assert torch.equal(seen[~is_turned], found.obs[~is_turned]), "the first seat sees the board as it lies"
    assert 0.3 < is_turned.float().mean() < 0.7
    assert len(seen) > 100


@pytest.mark.parametrize("game", TWINS)
def test_twins_have_the_same_value_and_the_same_scores_for_the_same_moves(game: str) -> None:
    found, policy = pairs(game), network(game)

    with torch.inference_mode():
        scores, values = policy.network(found.obs)
        twin_scores, twin_values = policy.network(found.twin_obs)

    torch.testing.assert_close(values, twin_values)
    for row, moves in enumerate(found.moves):
        own, twins = torch.tensor(moves).T
        torch.testing.assert_close(scores[row, own], twin_scores[row, twins])
    assert min(scores[row, [own for own, _ in moves]].std() for row, moves in enumerate(found.moves[:5])) > 0.05


def test_without_it_twins_are_strangers() -> None:
    found, policy = pairs("shogi"), network("shogi", from_mover=False)

    with torch.inference_mode():
        values, twin_values = policy.network(found.obs)[1], policy.network(found.twin_obs)[1]

    assert (values - twin_values).abs().median() > 0.01


def test_the_first_seat_is_judged_as_without_it_by_the_same_weights() -> None:
    policy, plain = network("shogi"), network("shogi", from_mover=False)
    plain.load_state_dict(policy.state_dict())
    obs = pairs("shogi").obs
    first = obs[obs[:, -1, 0, 0] == 0]

    with torch.inference_mode():
        found, expected = policy.network(first), plain.network(first)

    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[1], expected[1])


def test_what_one_seat_learns_the_other_learns_as_well() -> None:
    found, policy, gradients = pairs("shogi"), network("shogi"), []
    for obs, column in ((found.obs, 0), (found.twin_obs, 1)):
        policy.zero_grad()
        scores, values = policy.network(obs[:16])
        chosen = torch.tensor([moves[len(moves) // 2][column] for moves in found.moves[:16]])
        (scores.log_softmax(1).gather(1, chosen[:, None]).mean() + values.mean()).backward()
        gradients.append([weight.grad.clone() for weight in policy.parameters() if weight.grad is not None])

    assert len(gradients[0]) == len(list(policy.parameters()))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_a_game_without_a_known_symmetry_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"of othello looks .* only that of shogi and chess; set network.from_mover"):
        network("othello")


@pytest.mark.parametrize("kind", ["layers", "windows"])
def test_networks_that_turn_no_board_are_refused(kind: Any) -> None:
    with pytest.raises(ConfigError, match=f"Only a residual network turns a board, got .* network.kind={kind}"):
        build_policy(NetworkConfig(kind=kind, from_mover=True), GameEnvs("shogi", 1))


def test_a_run_from_before_it_is_read_as_it_was_and_cannot_be_changed_to_it() -> None:
    kept = find_recipe("connect4").model_dump(mode="json")
    del kept["network"]["from_mover"]

    read = SelfPlayConfig.model_validate(kept)
    turned = apply_overrides(read, ["network.from_mover=true"], what="the run")

    assert not read.network.from_mover
    found = changes_between(read.model_dump(mode="json"), turned.model_dump(mode="json"))
    assert [(each.path, each.after, each.effect) for each in found] == [("network.from_mover", True, "impossible")]
