"""A league: matches, ratings, promotions, and that all of it survives."""

from __future__ import annotations

import copy
import json

import pytest

from hookloop.errors import ConfigError

pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")

from hookloop.rl.policies import Policy
from hookloop.selfplay.build import build_policy
from hookloop.selfplay.config import NetworkConfig
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.league import League, Round


def untrained(seed: int) -> Policy:
    return build_policy(NetworkConfig(kind="layers", hidden=(8,)), GameEnvs("tic_tac_toe", 1), seed=seed)


def league(**options: object) -> League:
    return League("tic_tac_toe", games=8, capacity=2, **options)  # type: ignore[arg-type]


def rounds(of: League, seeds: list[int], first: int = 1) -> list[Round]:
    return [of.play_round(untrained(seed), first + k, seed=3) for k, seed in enumerate(seeds)]


def test_the_first_version_is_the_champion_and_the_next_plays_against_it() -> None:
    first, second, third = rounds(league(), [0, 1, 2])

    assert set(first.scores) == {"random"}
    assert (first.champion, first.promotion and first.promotion.parent) == ("epoch-1", "random")
    assert set(second.scores) == {"random", "epoch-1"}
    assert {"random", second.champion} <= set(third.scores)
    assert len(third.scores) == 3, "and one of the other past versions"
    assert set(third.metrics()) == {
        "random/score", "champion/score", "past_version/score", "rating", "rating_low", "rating_high",
    }  # fmt: skip


def test_a_version_is_promoted_when_its_whole_interval_is_above_the_line() -> None:
    generous, strict = league(promote_above=0.0, opening_moves=4), league(promote_above=0.99)
    rounds(generous, [0, 1])
    rounds(strict, [0, 1])

    assert [each.version for each in strict.promotions] == ["epoch-1"]
    scores = generous.results["epoch-2", "epoch-1"]
    assert scores.wins + scores.draws > 0
    assert [(each.version, each.parent) for each in generous.promotions] == [
        ("epoch-1", "random"), ("epoch-2", "epoch-1"),
    ]  # fmt: skip
    assert generous.promotions[1].score == scores.mean


def test_a_league_goes_on_as_if_it_had_not_been_saved() -> None:
    whole, half = league(), league()
    expected = rounds(whole, [0, 1, 2, 3, 4, 5])
    rounds(half, [0, 1, 2])
    restored = league()
    restored.load_state_dict(copy.deepcopy(half.state_dict()))
    found = rounds(restored, [3, 4, 5], first=4)

    assert found == expected[3:]
    assert restored.promotions == whole.promotions
    assert restored.results == whole.results


def test_what_is_saved_is_plain() -> None:
    played = league()
    rounds(played, [0, 1])
    saved = played.state_dict()

    json.dumps([saved["results"], saved["promotions"]], allow_nan=False)


def test_the_same_version_twice_neither_meets_nor_replaces_itself() -> None:
    played = league()
    once, again = played.play_round(untrained(0), 1, seed=3), played.play_round(untrained(0), 1, seed=3)

    assert again.scores == once.scores
    assert again.promotion is None
    assert [each.version for each in played.promotions] == ["epoch-1"]


def test_the_policy_is_left_as_it_was() -> None:
    policy = untrained(0).train()
    before = copy.deepcopy(policy.state_dict())
    league().play_round(policy, 1, seed=0)

    assert policy.training
    assert all((tensor == before[name]).all() for name, tensor in policy.state_dict().items())


@pytest.mark.parametrize("opponents", [(), ("random", "random"), ("perfect",)])
def test_opponents_that_make_no_league_are_refused(opponents: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="opponent"):
        League("tic_tac_toe", opponents=opponents)
