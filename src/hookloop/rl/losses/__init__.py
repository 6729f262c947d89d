"""Losses: composable, scheduled, each with its own experience, state and statistics."""

from hookloop.rl.losses.base import Loss, SharedLossData, epoch_gate
from hookloop.rl.losses.kickstart import Kickstart
from hookloop.rl.losses.ppo import PPO

__all__ = ["PPO", "Kickstart", "Loss", "SharedLossData", "epoch_gate"]
