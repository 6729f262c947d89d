"""Overrides on typed settings: what they change, what they refuse, and where values come from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.config.overrides import apply_overrides, origins
from hookloop.errors import ConfigError
from hookloop.recipes.selfplay import selfplay
from hookloop.recipes.supervised import charlm
from hookloop.rl.config import GAUSSIAN, EnvConfig, PPOConfig, RLConfig, StateDependentExploration, TrainerConfig
from hookloop.rl.values import Cosine, Linear


def recipe() -> RLConfig:
    return RLConfig(
        env=EnvConfig(id="CartPole-v1"),
        losses={"ppo": PPOConfig(clip=0.1)},
        trainer=TrainerConfig(values={"optimizer.learning_rate": Linear(1e-3, 0.0)}),
    )


def test_texts_become_what_the_setting_is() -> None:
    changed = apply_overrides(
        recipe(),
        ["env.num_envs=16", "trainer.gamma=9.5e-1", "env.normalise_rewards=true", "losses.ppo.value_clip=null",
         "policy.hidden=[32, 32]", "losses.ppo.train_schedule=from 3 epochs", "env.id=001"],
    )  # fmt: skip

    assert changed.env == EnvConfig(id="001", num_envs=16, normalise_rewards=True)
    assert changed.trainer.gamma == 0.95
    assert changed.policy.hidden == (32, 32)
    assert changed.losses["ppo"].train_schedule == "from 3 epochs"
    assert changed.losses["ppo"].clip == 0.1


def test_the_last_override_of_a_path_wins() -> None:
    assert apply_overrides(recipe(), ["env.num_envs=1", "env.num_envs=2"]).env.num_envs == 2


def test_another_kind_starts_with_settings_of_its_own() -> None:
    values = '{"optimizer.learning_rate": {"kind": "cosine", "start": 0.01}}'

    changed = apply_overrides(recipe(), [f"trainer.values={values}"])

    assert changed.trainer.values == {"optimizer.learning_rate": Cosine(0.01)}


def test_another_exploration_is_chosen_by_its_kind_and_back() -> None:
    by_state = apply_overrides(
        recipe(), ["policy.exploration.kind=state-dependent", "policy.exploration.resample_steps=4"]
    )

    assert by_state.policy.exploration == StateDependentExploration(resample_steps=4)
    assert apply_overrides(by_state, ["policy.exploration.kind=gaussian"]).policy.exploration == GAUSSIAN


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("env.num_env=3", "env.num_env is not a setting of the recipe.*Did you mean 'env.num_envs'"),
        ("trainr.gamma=1", "trainr is not a setting.*Did you mean 'trainer'"),
        ("losses.ppo.clipp=1", "losses.ppo.clipp is not a setting.*Did you mean 'losses.ppo.clip'"),
        ("env.num_envs=0", "env.num_envs is '0': input should be greater than or equal to 1"),
        ("trainer.gamma=lots", "trainer.gamma is 'lots'"),
        ("env.num_envs", "is no override; write NAME=VALUE"),
        ("=3", "is no override"),
        ("policy.hidden=[1,", "is no JSON"),
        ("policy.exploration.kind=gausian", "policy.exploration is .*'gaussian', 'state-dependent'"),
        ("policy.exploration.resample_steps=4", "resample_steps is not a setting"),
    ],
)
def test_a_wrong_override_is_refused_by_name_with_the_nearest_right_one(override: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        apply_overrides(recipe(), [override])


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides(recipe(), ["env.num_envs=0", "trainer.gamma=2"])

    assert len(str(caught.value).splitlines()) == 2


def test_settings_that_do_not_fit_together_are_named_without_all_the_others() -> None:
    with pytest.raises(ConfigError, match=r"^training: warmup_steps=100 is more than max_steps=40: .*steps\.$"):
        apply_overrides(charlm(), ["training.max_steps=40"])


def test_every_value_has_an_origin() -> None:
    overrides = ["env.num_envs=4"]
    given = recipe()

    found = origins(apply_overrides(given, overrides), given, overrides, recipe="mine")

    assert found["env.num_envs"] == (4, "override env.num_envs=4")
    assert found["env.id"] == ("CartPole-v1", "recipe mine")
    assert found["losses.ppo.clip"] == (0.1, "recipe mine")
    assert found["trainer.gamma"] == (0.99, "default")


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_settings_survive_being_written_and_read(num_envs: int, gamma: float) -> None:
    changed = apply_overrides(recipe(), [f"env.num_envs={num_envs}", f"trainer.gamma={gamma!r}"])

    assert RLConfig.model_validate_json(changed.model_dump_json()) == changed


def test_a_text_for_settings_that_have_a_name_is_their_name() -> None:
    given, words = selfplay(), ["game=othello", "game.num_envs=8"]

    changed = apply_overrides(given, words)

    assert (changed.game.name, changed.game.num_envs) == ("othello", 8)
    assert changed == apply_overrides(given, ["game.num_envs=8", "game.name=othello"])
    found = origins(changed, given, words, recipe="selfplay")
    assert found["game.name"] == ("othello", "override game=othello")
    assert found["game.max_moves"] == (None, "default")
    assert apply_overrides(given, ['game={"name": "hex"}']).game.name == "hex"
