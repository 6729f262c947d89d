"""From settings to a trainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hookloop.core import HookManager, derive_seed
from hookloop.core.signals import SECOND
from hookloop.curriculum import Curriculum, CurriculumConfig, LessonEnv
from hookloop.errors import ConfigError
from hookloop.pools import MakePerformer
from hookloop.rl.config import EnvConfig, KickstartConfig, PolicyConfig, PPOConfig, RLConfig
from hookloop.rl.env_making import unscaled_envs
from hookloop.rl.envs import (
    Envs,
    LessonEnvs,
    NormalizedObservations,
    NormalizedRewards,
    OneHotObservations,
    make_envs,
)
from hookloop.rl.losses import PPO, Kickstart, Loss
from hookloop.rl.policies import Policy, make_policy
from hookloop.rl.slots import RolloutPerformer, SlotEnvs, SlotSetup, can_be_saved, envs_in_slot, make_setup
from hookloop.rl.trainer import Trainer

FindTeacher = Callable[[KickstartConfig], tuple[PolicyConfig, Mapping[str, Any]]]


def build_trainer(
    config: RLConfig,
    *,
    hooks: HookManager | Sequence[object] = (),
    seed: int = 0,
    second_signal: SECOND = "raise",
    find_teacher: FindTeacher | None = None,
    slots: SlotSetup | None = None,
) -> Trainer:
    """Build everything a run needs; every random number in it follows from ``seed``.

    Args:
        config: The settings.
        hooks: What else should happen.
        seed: The root of all randomness.
        second_signal: What a second Ctrl-C does.
        find_teacher: Gives the network and the weights of a loss that has a teacher.
        slots: Who plays the rollouts as tasks; by default the settings say it.
    """
    if slots is None and config.workers is not None:
        slots = build_slots(config)
    if slots is None:
        envs = build_envs(config.env, gamma=config.trainer.gamma, curriculum=config.curriculum)
    else:
        envs = scaled_envs(config.env, slots.envs, gamma=config.trainer.gamma)
    return Trainer(
        policy=build_policy(config.policy, envs, seed=derive_seed(seed, "policy")),
        envs=envs,
        losses=[build_loss(name, loss, envs, find_teacher) for name, loss in config.losses.items()],
        config=config.trainer,
        curriculum=None if config.curriculum is None else Curriculum(config.curriculum),
        hooks=hooks,
        seed=seed,
        second_signal=second_signal,
        env=config.env,
        slots=slots,
    )


def build_slots(config: RLConfig) -> SlotSetup:
    """Build what plays the rollouts of a run as tasks."""
    if config.curriculum is not None:
        raise ConfigError(
            f"workers is {config.workers!r}, but the lessons of a curriculum are played where their learner is; "
            "leave workers out, or train without a curriculum."
        )
    like = unscaled_envs(config.env, 1)
    can_move = can_be_saved(like)
    like.close()
    envs = SlotEnvs(like, num_envs=config.env.num_envs, slots=config.slots)
    return make_setup(config, envs, performer_maker(config), can_move=can_move)


def performer_maker(config: RLConfig) -> MakePerformer:
    """Return what makes a player of one slot's rollouts, in any process."""
    env = config.env.model_copy(update={"num_envs": envs_in_slot(config, config.env.num_envs)})
    return partial(
        RolloutPerformer,
        partial(build_envs, env, gamma=config.trainer.gamma),
        partial(build_policy, config.policy),
        horizon=config.trainer.horizon,
        segment_length=1 if config.policy.memory == "none" else config.trainer.segment_length,
    )


def build_policy(config: PolicyConfig, envs: Envs, *, seed: int = 0) -> Policy:
    """Build a policy that fits the environments."""
    return make_policy(
        envs.observation,
        envs.action,
        hidden=config.hidden,
        activation=config.activation,
        memory=config.memory,
        exploration=config.exploration,
        seed=seed,
    )


def build_loss(name: str, config: PPOConfig | KickstartConfig, envs: Envs, find_teacher: FindTeacher | None) -> Loss:
    """Build a loss, and its teacher if it has one."""
    if isinstance(config, PPOConfig):
        return PPO(name=name, **config.model_dump(exclude={"kind"}))
    if find_teacher is None:
        raise ConfigError(
            f"The loss {name!r} has the run {config.teacher!r} as its teacher, which only 'hookloop train' looks up; "
            "in Python, build the teacher and give Kickstart(teacher) to the Trainer."
        )
    network, weights = find_teacher(config)
    teacher = build_policy(network, envs)
    try:
        teacher.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise ConfigError(f"The run {config.teacher!r} cannot teach here: its weights do not fit. {error}") from error
    return Kickstart(teacher, name=name, **config.model_dump(exclude={"kind", "teacher", "checkpoint"}))


def build_envs(config: EnvConfig, *, gamma: float, curriculum: CurriculumConfig | None = None) -> Envs:
    """Build the environments of a run, or those of its lessons."""
    envs: Envs
    if curriculum is None:
        envs = unscaled_envs(config, config.num_envs)
    else:
        made = {name: partial(_make_lesson, config, lesson.env) for name, lesson in curriculum.lessons.items()}
        envs = LessonEnvs(made, num_envs=config.num_envs, slots=curriculum.slots)
        if config.one_hot is not None:
            envs = OneHotObservations(envs, config.one_hot)
    return scaled_envs(config, envs, gamma=gamma)


def scaled_envs(config: EnvConfig, envs: Envs, *, gamma: float) -> Envs:
    """Return environments whose observations and rewards are scaled as the settings ask for."""
    if config.normalise_observations:
        envs = NormalizedObservations(envs)
    if config.normalise_rewards:
        envs = NormalizedRewards(envs, gamma=gamma)
    return envs


def lesson_env(config: EnvConfig, lesson: LessonEnv) -> EnvConfig:
    """Return the settings of a lesson's environment: the run's, with what the lesson changes."""
    changed = {"id": lesson.id or config.id, "kwargs": {**config.kwargs, **lesson.kwargs}}
    return config.model_copy(update=changed)


def _make_lesson(config: EnvConfig, lesson: LessonEnv, num_envs: int) -> Envs:
    wanted = lesson_env(config, lesson)
    return make_envs(wanted.id, num_envs, mode=wanted.mode, kwargs=wanted.kwargs)
