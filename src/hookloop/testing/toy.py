"""A workload small enough to read in a minute: fits a line by stochastic gradient descent, in plain Python."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hookloop.core import TrainingLoop

TRUE_SLOPE, TRUE_INTERCEPT = 3.0, -1.0


class ToyWorkload:
    """Collects points of a noisy line and fits it; resumes bit for bit from the end of any epoch.

    Args:
        epochs: How many epochs to train.
        steps_per_epoch: Vector steps of collection in each epoch; each collects ``num_envs`` points.
        num_envs: How many points one step collects.
        minibatch_size: Points per optimizer step.
        seed: The seed of the points' randomness.
    """

    def __init__(
        self, epochs: int = 10, *, steps_per_epoch: int = 8, num_envs: int = 4, minibatch_size: int = 8, seed: int = 0
    ) -> None:
        self.epochs = epochs
        self.steps_per_epoch = steps_per_epoch
        self.num_envs = num_envs
        self.minibatch_size = minibatch_size
        self.slope = 0.0
        self.intercept = 0.0
        self.learning_rate = 0.1
        self.losses: list[float] = []
        self._random = random.Random(seed)

    def is_finished(self, loop: TrainingLoop) -> bool:
        """Tell whether all epochs are trained."""
        return loop.clocks.epochs >= self.epochs

    def run_epoch(self, loop: TrainingLoop) -> None:
        """Collect points, then fit them."""
        points: list[tuple[float, float]] = []
        with loop.rollout():
            for step in range(self.steps_per_epoch):
                points += [self._point() for _ in range(self.num_envs)]
                loop.step(env_steps=self.num_envs, episodes=int(step == self.steps_per_epoch - 1))
        with loop.train_phase():
            loss = 0.0
            for start in range(0, len(points), self.minibatch_size):
                batch = points[start : start + self.minibatch_size]
                loop.minibatch_start(batch)
                loss, gradients = self._loss_and_gradients(batch)
                loop.context.values["gradients"] = gradients
                if loop.gradients(loss):
                    self.slope -= self.learning_rate * gradients[0]
                    self.intercept -= self.learning_rate * gradients[1]
                    loop.optimizer_step()
                loop.minibatch_end(loss)
            loop.update_epoch_done()
        self.losses.append(loss)
        loop.state.loss_stats = {"loss": loss}
        loop.context.metrics = {"loss": loss}

    def state_dict(self) -> dict[str, Any]:
        """Return the fit, the losses so far and the stream's position."""
        version, internal, gauss = self._random.getstate()
        return {
            "slope": self.slope,
            "intercept": self.intercept,
            "losses": list(self.losses),
            "random": [version, list(internal), gauss],
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.slope, self.intercept = saved["slope"], saved["intercept"]
        self.losses = list(saved["losses"])
        version, internal, gauss = saved["random"]
        self._random.setstate((version, tuple(internal), gauss))

    def _point(self) -> tuple[float, float]:
        x = self._random.uniform(-1, 1)
        return x, TRUE_SLOPE * x + TRUE_INTERCEPT + self._random.gauss(0, 0.1)

    def _loss_and_gradients(self, batch: list[tuple[float, float]]) -> tuple[float, tuple[float, float]]:
        errors = [(self.slope * x + self.intercept - y, x) for x, y in batch]
        loss = sum(error * error for error, _ in errors) / len(batch)
        by_slope = 2 * sum(error * x for error, x in errors) / len(batch)
        by_intercept = 2 * sum(error for error, _ in errors) / len(batch)
        return loss, (by_slope, by_intercept)
