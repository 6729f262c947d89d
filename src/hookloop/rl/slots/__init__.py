"""Rollouts as tasks: the environments of a run in a fixed number of slots, played by any number of workers."""

from hookloop.rl.slots.collecting import SlotCollector
from hookloop.rl.slots.envs import SlotEnvs
from hookloop.rl.slots.gathering import Rollout, RolloutFailedError
from hookloop.rl.slots.hook import WorkersHook
from hookloop.rl.slots.learning import VtraceLearner
from hookloop.rl.slots.performing import RolloutPerformer
from hookloop.rl.slots.setup import SlotSetup, can_be_saved, envs_in_slot, make_setup

__all__ = [
    "Rollout",
    "RolloutFailedError",
    "RolloutPerformer",
    "SlotCollector",
    "SlotEnvs",
    "SlotSetup",
    "VtraceLearner",
    "WorkersHook",
    "can_be_saved",
    "envs_in_slot",
    "make_setup",
]
