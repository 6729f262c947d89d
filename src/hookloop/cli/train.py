"""``hookloop train``: until there are recipes, the toy workload."""

from __future__ import annotations

import logging
import sys

from hookloop.core import HookContext, TrainingLoop
from hookloop.errors import ConfigError
from hookloop.testing.toy import TRUE_INTERCEPT, TRUE_SLOPE, ToyWorkload


def train(*, epochs: int = 20, seed: int = 0) -> int:
    """Train the toy workload: fit a noisy line in plain Python, so that you can watch hooks at work.

    Args:
        epochs: How many epochs to train.
        seed: The seed of the run.
    """
    if epochs < 1:
        raise ConfigError(f"--epochs must be at least 1, got {epochs}.")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    say("No recipe exists yet: this is the toy workload, which fits a noisy line in plain Python.")
    workload = ToyWorkload(epochs, seed=seed)
    loop = TrainingLoop(workload, second_signal="exit")
    loop.state.seed = seed
    loop.hooks.add(_progress, name="progress", on="epoch_end", schedule=f"every {max(1, epochs // 10)} epochs")
    result = loop.run()
    say(f"{result.outcome} after {loop.clocks.epochs} epochs, {loop.clocks.env_steps} points")
    say(f"slope {workload.slope:.3f}, true {TRUE_SLOPE:g}; intercept {workload.intercept:.3f}, true {TRUE_INTERCEPT:g}")
    return result.exit_code


def say(line: str) -> None:
    """Write one line of result."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _progress(ctx: HookContext) -> None:
    say(f"epoch={ctx.state.epoch} env_steps={ctx.state.agent_step} loss={ctx.metrics['loss']:.5f}")
