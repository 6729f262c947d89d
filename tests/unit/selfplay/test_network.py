"""The network for boards: what it returns, and that actions lie where the game has them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hookloop.errors import ConfigError
from hookloop.rl.policies import Policy
from hookloop.rl.specs import ArraySpec, DiscreteActions, ObservationSpec
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.network import BoardNetwork, MovePlanes, PlanarMoves, WindowNetwork, move_planes


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("game", "shape", "num_actions"),
    [
        ("tic_tac_toe", (4, 3, 3), 9),
        ("connect_four", (4, 6, 7), 7),
        ("go", (5, 9, 9), 82),
        ("shogi", (46, 9, 9), 13689),
    ],
)
def test_it_returns_parameters_and_bounded_values(game: str, shape: tuple[int, ...], num_actions: int) -> None:
    planes = move_planes(game, num_actions, shape[1] * shape[2])
    network = BoardNetwork(shape, num_actions, planes=planes, blocks=2, channels=8, generator=generator())

    parameters, values = network(torch.rand(5, *shape, generator=generator()))

    assert parameters.shape == (5, num_actions)
    assert values.shape == (5,)
    assert values.abs().max() <= 1


def test_values_that_were_even_for_long_can_still_be_learned() -> None:
    network = BoardNetwork((6, 9, 9), 81, blocks=1, channels=16, generator=generator())
    assert network(torch.rand(8, 6, 9, 9, generator=generator()))[1].abs().max() < 0.05, "even at first"
    optimizer, draws = torch.optim.Adam(network.parameters(), 3e-3), generator(1)

    def learn(steps: int, *, has_results: bool) -> float:
        loss = torch.zeros(())
        for _ in range(steps):
            obs = (torch.rand(64, 6, 9, 9, generator=draws) < 0.3).float()
            won = (obs[:, 0].sum(dim=(1, 2)) > obs[:, 1].sum(dim=(1, 2))).float() * 2 - 1
            loss = (network(obs)[1] - (won if has_results else 0.01 * won)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    assert learn(150, has_results=False) < 0.01
    assert learn(120, has_results=True) < 0.6


def test_a_position_is_judged_alike_in_any_batch() -> None:
    network = BoardNetwork((4, 6, 7), 7, blocks=2, channels=8, generator=generator())
    obs = torch.rand(6, 4, 6, 7, generator=generator())

    together, alone = network(obs), network(obs[2:3])

    torch.testing.assert_close(together[0][2:3], alone[0])
    torch.testing.assert_close(together[1][2:3], alone[1])


def test_moves_of_shogi_lie_on_the_squares_they_leave_or_are_dropped_on() -> None:
    head = PlanarMoves(1, MovePlanes(per_origin=162, per_target=7, others=0), None)
    with torch.no_grad():
        head.mixing.weight.fill_(1.0)
        head.planes.weight.fill_(1.0)
    board = torch.zeros(1, 1, 9, 9)
    board[0, 0, 1, 2] = 1.0  # square 11

    lit = torch.nonzero(head(board)[0]).ravel().tolist()

    assert lit == [11 * 162 + k for k in range(162)] + [81 * 162 + piece * 81 + 11 for piece in range(7)]


def test_pieces_of_shogi_are_seen_on_the_squares_their_moves_leave() -> None:
    pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")
    games = GameEnvs("shogi", 1)
    games.reset(0)
    for ply in range(120):
        seat, legal = int(games.seats[0]), np.flatnonzero(games.masks[0])
        own = (
            games.planes[0, 1 - seat : 28 : 2].max(axis=0).ravel()
        )  # the second seat's pieces come first, kind by kind
        assert (own[legal[legal < 81 * 162] // 162] == 1).all()
        assert (own[(legal[legal >= 81 * 162] - 81 * 162) % 81] == 0).all(), "what is dropped goes where there is none"
        games.step(legal[[ply * 7 % len(legal)]])


@pytest.mark.parametrize("name", ["go(board_size=9)", "hex", "othello", "tic_tac_toe"])
def test_stones_are_seen_on_the_squares_they_were_put_on(name: str) -> None:
    pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")
    games = GameEnvs(name, 1)
    games.reset(0)
    squares = games.planes[0, 0].size
    for ply in range(5):
        before, legal = games.states[0].observation_tensor(0), np.flatnonzero(games.masks[0][:squares])
        move = legal[[ply * 7 % len(legal)]]
        games.step(move)
        changed = np.subtract(games.states[0].observation_tensor(0), before).reshape(-1, squares)
        assert changed[:, move[0]].any()


def test_moves_of_shogi_compare_the_square_they_leave_with_the_one_they_reach() -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")
    head = PlanarMoves(4, MovePlanes(162, 7, 0, ways=2), generator())
    assert head.pairs is not None
    with torch.no_grad():
        for layer in (head.pairs.origins, head.pairs.targets, head.planes):
            layer.weight.normal_(generator=generator(1))
    seen = torch.rand(1, 4, 9, 9, generator=generator(2))
    with torch.no_grad():
        found = head(seen)[0]
        mixed = head.mixing(seen).relu()[0]
        origins, targets = (
            mixed.permute(1, 2, 0) @ layer.weight.T for layer in (head.pairs.origins, head.pairs.targets)
        )
        leaving = torch.einsum("chw,oc->hwo", mixed, head.planes.weight[:162, :, 0, 0])

    state = pyspiel.load_game("shogi").new_initial_state()
    for ply in range(60):
        for action in state.legal_actions():
            text = state.action_to_string(action)
            if "*" in text:
                continue
            (from_row, from_column), (to_row, to_column) = (
                (ord("i") - ord(text[at + 1]), 9 - int(text[at])) for at in (0, 2)
            )
            way = int(text.endswith("+"))
            compared = origins[from_row, from_column] @ targets[to_row, to_column, 4 * way : 4 * way + 4] / 2
            expected = compared + leaving[from_row, from_column, action % 162]
            torch.testing.assert_close(found[action], expected)
        state.apply_action(state.legal_actions()[ply * 7 % len(state.legal_actions())])


def test_the_policy_gives_no_chance_to_what_is_not_legal() -> None:
    network = BoardNetwork((4, 6, 7), 7, blocks=1, channels=8, generator=generator())
    policy = Policy(network, DiscreteActions(7), ObservationSpec.single(ArraySpec((4, 6, 7), "float32")))
    mask = torch.tensor([[False, True, False, False, True, False, False]]).expand(200, 7)
    obs = torch.rand(200, 4, 6, 7, generator=generator())

    acted = policy.act(obs, generator=generator(), mask=mask)
    judged = policy.evaluate(obs, acted.actions.clone(), mask=mask)

    assert set(acted.actions.tolist()) == {1, 4}
    assert judged.entropy.max() <= torch.log(torch.tensor(2.0)) + 1e-5, "of two moves, not of seven"
    torch.testing.assert_close(judged.log_probs, acted.log_probs, rtol=1e-4, atol=1e-5)


def test_first_weights_follow_from_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    one, other = (BoardNetwork((4, 6, 7), 7, generator=generator(3)).state_dict() for _ in range(2))

    assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_observations_that_are_no_planes_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"planes \[C, H, W\], got observations of shape \(12,\)"):
        BoardNetwork((12,), 7)


def windows(shape: tuple[int, ...] = (3, 6, 7), window: int = 4) -> WindowNetwork:
    return WindowNetwork(shape, 7, window=window, channels=5, hidden=(16,), generator=generator())


def test_windows_are_looked_at_as_a_convolution_would() -> None:
    network = windows()
    obs = torch.rand(2, 3, 6, 7, generator=generator())
    weight = network.stem.weight.view(5, 3, 4, 4)
    seen = torch.nn.functional.conv2d(obs, weight, network.stem.bias).relu()  # [B, channels, 3, 4]
    hidden = network.layers[0](seen.permute(0, 2, 3, 1).flatten(1)).relu()

    parameters, values = network(obs)

    torch.testing.assert_close(parameters, network.policy(hidden))
    torch.testing.assert_close(values, network.value(hidden).tanh().squeeze(1))


def test_windows_larger_than_the_board_are_refused() -> None:
    with pytest.raises(ConfigError, match="of at least that size"):
        windows((3, 3, 3))
