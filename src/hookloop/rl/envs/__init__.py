"""Environments behind one face, whoever simulates them; ``Envs`` says what can be relied on."""

from hookloop.rl.envs.base import Envs, EnvState, Episode, Exactness, SavesItself
from hookloop.rl.envs.check import Problem, check_envs, steps_per_second
from hookloop.rl.envs.envpool_envs import EnvPoolEnvs
from hookloop.rl.envs.errors import (
    ActionMismatchError,
    EnvMismatchError,
    EnvProcessError,
    EnvStateError,
    UnknownEnvError,
    UnsupportedSpaceError,
)
from hookloop.rl.envs.gymnasium_envs.loop import SyncEnvs
from hookloop.rl.envs.gymnasium_envs.making import wrap_envs
from hookloop.rl.envs.gymnasium_envs.restorable import Restorable
from hookloop.rl.envs.gymnasium_envs.vector import VectorEnvs
from hookloop.rl.envs.lesson_envs import LessonEnvs, Move
from hookloop.rl.envs.making import EnvMode, make_envs
from hookloop.rl.envs.normalize import NormalizedObservations, NormalizedRewards
from hookloop.rl.envs.one_hot import OneHotObservations
from hookloop.rl.envs.running import RunningStatistics
from hookloop.rl.envs.wrapping import WrappedEnvs

__all__ = [
    "ActionMismatchError",
    "EnvMismatchError",
    "EnvMode",
    "EnvPoolEnvs",
    "EnvProcessError",
    "EnvState",
    "EnvStateError",
    "Envs",
    "Episode",
    "Exactness",
    "LessonEnvs",
    "Move",
    "NormalizedObservations",
    "NormalizedRewards",
    "OneHotObservations",
    "Problem",
    "Restorable",
    "RunningStatistics",
    "SavesItself",
    "SyncEnvs",
    "UnknownEnvError",
    "UnsupportedSpaceError",
    "VectorEnvs",
    "WrappedEnvs",
    "check_envs",
    "make_envs",
    "steps_per_second",
    "wrap_envs",
]
