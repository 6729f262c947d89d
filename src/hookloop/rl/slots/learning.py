"""Learning from rollouts that older weights have played."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from hookloop.rl.experience import Experience, gather_observation
from hookloop.rl.learner import Learner
from hookloop.rl.vtrace import vtrace


class VtraceLearner(Learner):
    """Improves a policy on experience that is a little older than its weights."""

    def estimate(self, experience: Experience, last_values: Tensor) -> None:
        """Write the values of now, and V-trace's advantages and returns, into the experience."""
        arrays, steps = experience.arrays, experience.steps
        log_ratios = self._value_again(experience)
        estimated = vtrace(
            log_ratios,
            arrays["rewards"][:steps],
            arrays["values"][:steps],
            last_values.numpy(),
            experience.ends(),
            arrays["bootstraps"][:steps],
            gamma=self.gamma,
            decay=self.gae_lambda,
        )
        arrays["advantages"][:steps] = estimated.advantages
        arrays["returns"][:steps] = estimated.targets

    def _value_again(self, experience: Experience) -> np.ndarray:
        """Replace the values by those of now, and return how much likelier the actions are now, as logarithms."""
        steps, flat = experience.steps, (experience.steps * experience.num_envs,)
        columns = {
            name: column[:steps].reshape(*flat, *column.shape[2:]) for name, column in experience.columns.items()
        }
        obs = gather_observation({name: columns[name] for name in experience.observation_names})
        with torch.no_grad():
            now = self.policy.evaluate(obs, columns["actions"], mask=columns.get("masks"))
        experience["values"][:steps] = now.values.view(steps, -1)
        return (now.log_probs - columns["log_probs"]).view(steps, -1).numpy()
