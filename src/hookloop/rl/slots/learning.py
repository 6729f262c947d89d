"""Learning from rollouts that older weights have played."""

from __future__ import annotations

import torch
from torch import Tensor

from hookloop.rl.experience import Experience, gather_observation
from hookloop.rl.learner import Learner
from hookloop.rl.vtrace import Floats, Vtrace, vtrace


class VtraceLearner(Learner):
    """Improves a policy on experience that is a little older than its weights."""

    def estimate(self, experience: Experience, last_values: Tensor) -> None:
        """Write the values of now, and V-trace's advantages and returns, into the experience."""
        log_ratios = self._value_again(experience)
        arrays, steps = experience.arrays, experience.steps
        estimated = self._trace(experience, last_values, log_ratios)
        arrays["advantages"][:steps] = estimated.advantages
        arrays["returns"][:steps] = estimated.targets

    def _trace(self, experience: Experience, last_values: Tensor, log_ratios: Floats) -> Vtrace:
        """Return targets and advantages of an experience whose values are those of now."""
        arrays, steps = experience.arrays, experience.steps
        return vtrace(
            log_ratios,
            arrays["rewards"][:steps],
            arrays["values"][:steps],
            last_values.numpy(),
            experience.ends(),
            arrays["bootstraps"][:steps],
            gamma=self.gamma,
            decay=self.gae_lambda,
        )

    def _value_again(self, experience: Experience) -> Floats:
        """Replace the values by those of now, and return how much likelier the actions are now, as logarithms.

        What was not the policy's own choice is as likely as it was.
        """
        steps, num_rows = experience.steps, experience.steps * experience.num_envs
        columns = {
            name: column[:steps].reshape(num_rows, *column.shape[2:]) for name, column in experience.columns.items()
        }
        log_ratios = torch.empty(num_rows)
        # Part by part: there is room for what the policy makes of a minibatch, but perhaps not of all rows at once.
        num_together = experience.horizon * experience.num_envs // self.sampler.num_minibatches
        for first in range(0, num_rows, num_together):
            rows = slice(first, first + num_together)
            part = {name: column[rows] for name, column in columns.items()}
            obs = gather_observation({name: part[name] for name in experience.observation_names})
            with torch.no_grad():
                now = self.policy.evaluate(obs, part["actions"], mask=part.get("masks"))
            part["values"].copy_(now.values)
            torch.sub(now.log_probs, part["log_probs"], out=log_ratios[rows])
        log_ratios.masked_fill_(~columns["valid"], 0.0)
        return log_ratios.view(steps, -1).numpy()
