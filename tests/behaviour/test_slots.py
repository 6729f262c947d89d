"""Rollouts as tasks: whoever plays them, however often, the bits are the same."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from hookloop.errors import ConfigError
from hookloop.rl import PPO, Kickstart, RLConfig, Trainer, build_trainer
from hookloop.rl.build import build_policy, build_slots, scaled_envs
from hookloop.rl.envs.errors import EnvStateError
from tests.behaviour.test_rl_resume import CASES, ending, settings, steps_to_train
from tests.unit.rl.slots.pools import ScatteredPool, trainer_with

EPOCHS = 6


def in_slots(case: str, **changes: Any) -> RLConfig:
    return CASES[case]().model_copy(update={"workers": 0, "slots": 2, **changes})


PLAYED = ("native", "sync", "continuous, normalised", "state-dependent, gru")
"""The cases that differ in how they are played; the others differ in how they are learned from."""


@pytest.mark.parametrize("case", PLAYED)
def test_rollouts_played_by_anyone_train_the_same_bits_and_resume_to_them(case: str) -> None:
    config = in_slots(case)
    total = steps_to_train(config)
    whole = build_trainer(config, seed=3)
    saves: dict[int, Any] = {}
    save = lambda ctx: saves.__setitem__(ctx.state.epoch, copy.deepcopy(whole.state_dict()))  # noqa: E731
    whole.add_hook(save, name="save", on="epoch_end", stage="checkpoint")
    whole.train(total)

    pools: list[ScatteredPool] = []

    def scattered(make: Any) -> ScatteredPool:
        pools.append(ScatteredPool(make, workers=3))
        return pools[-1]

    for epoch in (0, EPOCHS // 2):
        other = trainer_with(config, scattered)
        other.add_hook(lambda ctx: None, name="save", on="epoch_end", stage="checkpoint")
        if epoch:
            other.load_state_dict(saves[epoch])
        other.train(total)

        assert torch.equal(other.optimizer.flat, whole.optimizer.flat)
        assert ending(other) == ending(whole)
    assert all(min(sorted(pool.loads)[-2:]) > 0 for pool in pools), "more than one has played"


def test_a_run_in_slots_tells_its_hooks_what_a_run_without_tells() -> None:
    def told(workers: int | None) -> list[str]:
        trainer = build_trainer(in_slots("sync", workers=workers), seed=3)
        events: list[str] = []
        for name in ("rollout_start", "step_end", "episode_end", "rollout_end", "train_phase_start", "epoch_end"):
            trainer.add_hook(
                lambda ctx, name=name: events.append(f"{name} {ctx.state.clocks.env_steps}"), name=name, on=name
            )
        trainer.train(32 * 4 * 2)
        return [event for event in events if not event.startswith("episode_end")]

    assert told(0) == told(None)


def test_episodes_are_counted_and_shown_on_the_step_they_end() -> None:
    trainer = build_trainer(in_slots("sync"), seed=3)
    shown: list[int] = []
    trainer.add_hook(lambda ctx: shown.append(len(ctx.trainer.envs.finished)), name="shown", on="episode_end")

    result = trainer.train(32 * 4 * 3)

    assert result.episodes == sum(shown) > 0
    assert all(shown), "the event comes with the episodes it is about"
    ends = int(trainer.experience.ends().sum())
    assert len(trainer.state.rollout_stats["return"]) == ends


def test_a_rollout_that_is_ended_early_leaves_its_rest_out() -> None:
    trainer = build_trainer(in_slots("sync", slots=1), seed=3)

    def stop(ctx: Any) -> None:
        ctx.state.stop_rollout = ctx.state.clocks.env_steps % 64 == 0

    trainer.add_hook(stop, name="stop", on="step_end")
    trainer.train(64)

    assert trainer.experience.steps == 16
    assert torch.equal(trainer.workload.collector.last_values(), trainer.experience["values"][16])


def test_losses_that_store_something_are_asked_about_every_step() -> None:
    config = in_slots("masked")
    slots = build_slots(config)
    envs = scaled_envs(config.env, slots.envs, gamma=0.99)
    teacher = build_policy(config.policy, envs, seed=5)
    policy = build_policy(config.policy, envs, seed=6)
    losses = [PPO(), Kickstart(teacher)]
    trainer = Trainer(policy=policy, envs=envs, losses=losses, config=config.trainer, slots=slots, env=config.env)

    trainer.train(32 * 4)

    obs = trainer.experience["obs"].flatten(0, 1)
    with torch.no_grad():
        _, values = teacher.forward(obs)
    assert torch.allclose(trainer.experience["teacher_values"].flatten(), values)


def test_an_evaluation_sees_the_statistics_that_all_slots_share() -> None:
    trainer = build_trainer(in_slots("continuous, normalised"), seed=3)
    trainer.train(32 * 4 * 2)

    normalisation = trainer.player().normalisation

    assert normalisation is not None
    # Each environment is seen once at its reset, and at every step; no episode of this length ends.
    assert next(iter(normalisation.statistics.values()))["count"] == 4 * (1 + 64)


def test_going_back_to_an_earlier_state_plays_from_there() -> None:
    config = in_slots("gru")
    trainer, fresh = build_trainer(config, seed=3), build_trainer(config, seed=3)
    trainer.train(32 * 4)
    saved = copy.deepcopy(trainer.state_dict())
    trainer.train(32 * 4 * 3)

    trainer.load_state_dict(saved)
    trainer.train(32 * 4 * 3)
    fresh.train(32 * 4 * 3)

    assert torch.equal(trainer.optimizer.flat, fresh.optimizer.flat)


def test_a_roll_back_in_the_middle_of_a_run_plays_from_there() -> None:
    config, total = in_slots("gru"), 32 * 4 * 5
    trainer, reference = build_trainer(config, seed=3), build_trainer(config, seed=3)
    saves: list[Any] = []

    def roll_back(ctx: Any) -> None:
        if ctx.state.epoch == 1 and not saves:
            saves.append(copy.deepcopy(trainer.state_dict()))
        elif ctx.state.epoch == 3 and len(saves) == 1:
            saves.append(None)
            ctx.loop.roll_back(saves[0], seed=9)

    trainer.add_hook(roll_back, name="roll back", on="epoch_end")
    trainer.train(total)
    reference.load_state_dict(saves[0], strict=False)
    reference.workload.perturb(9)
    reference.train(total)

    assert torch.equal(trainer.optimizer.flat, reference.optimizer.flat)


def test_other_slots_are_another_run_and_a_resume_with_them_is_refused() -> None:
    two, four = build_trainer(in_slots("sync"), seed=3), build_trainer(in_slots("sync", slots=4), seed=3)
    two.train(32 * 4)

    with pytest.raises(EnvStateError, match="saved for environments in 2 slots, here are 4"):
        four.load_state_dict(two.state_dict())


def test_a_run_without_slots_cannot_go_on_in_them() -> None:
    without, slots = build_trainer(in_slots("sync", workers=None), seed=3), build_trainer(in_slots("sync"), seed=3)
    without.train(32 * 4)

    with pytest.raises(EnvStateError, match="in no slots, here are 2"):
        slots.load_state_dict(without.state_dict())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slots": 3}, "4 environments do not go into 3 slots evenly; set slots to one of 1, 2, 4"),
        ({"workers": 3}, "workers is 3, but there are 2 slots"),
        ({"rollout_mode": "async"}, "nobody could play while this process learns"),
    ],
)
def test_settings_that_mean_nothing_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_trainer(in_slots("sync", **changes))


def test_a_policy_with_memory_cannot_be_played_asynchronously() -> None:
    with pytest.raises(ConfigError, match="this policy has a memory"):
        build_trainer(in_slots("gru", workers=1, rollout_mode="async"))


def test_environments_in_slots_cannot_be_stepped() -> None:
    trainer = build_trainer(in_slots("sync"))

    with pytest.raises(RuntimeError, match="cannot be stepped here"):
        trainer.envs.step(torch.zeros(4).numpy())


def test_settings_of_a_run_have_no_workers_unless_asked_for() -> None:
    assert settings("CartPole-v1").workers is None
