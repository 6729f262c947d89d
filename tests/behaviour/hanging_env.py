"""CartPole that hangs once, in whichever process comes first to a step."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

MARK = "HANG_ONCE"
"""Names the file that says it has happened; without it nothing hangs."""


class HangingCartPole(CartPoleEnv):
    """As CartPole, but for one step in one process that never ends."""

    def step(self, action: Any) -> Any:
        """Step, or hang."""
        mark = os.environ.get(MARK)
        if mark and Path(mark).parent.is_dir() and not Path(mark).exists():
            Path(mark).touch()
            time.sleep(3600)
        return super().step(action)


if "HangingCartPole-v0" not in gymnasium.registry:
    gymnasium.register("HangingCartPole-v0", HangingCartPole, max_episode_steps=500)
