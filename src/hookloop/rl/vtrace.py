"""V-trace: values and advantages of a policy from experience that an older one has gathered.

The arithmetic of Espeholt et al. (2018), "IMPALA": equation 1, the policy gradient of section 4.2, and the decay of
remark 2. Axes: T steps of collection, N environments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Vtrace(NamedTuple):
    """What V-trace gives for every step."""

    targets: Floats
    """What the values are trained towards."""
    advantages: Floats
    """What the actions were better than expected."""


def vtrace(
    log_ratios_TN: Floats,
    rewards_TN: Floats,
    values_TN: Floats,
    last_values_N: Floats,
    ends_TN: Flags,
    bootstraps_TN: Floats,
    *,
    gamma: float,
    decay: float = 1.0,
    max_rho: float = 1.0,
    max_c: float = 1.0,
) -> Vtrace:
    """Return targets of the values and advantages of the actions.

    Args:
        log_ratios_TN: How much likelier each action is now than when it was chosen, as a logarithm.
        rewards_TN: The rewards.
        values_TN: What the policy of now thinks of each observation.
        last_values_N: The values of the observations after the last step.
        ends_TN: Where an episode ended, by termination or truncation.
        bootstraps_TN: The value of the true last observation where an episode was cut off, zero everywhere else.
        gamma: The discount.
        decay: The decay of the sum of errors; 1 is V-trace as published.
        max_rho: The bound of the ratio in each error: it decides whose values are learned.
        max_c: The bound of the ratio by which later errors count: it decides how fast.
    """
    ratios_TN = np.exp(log_ratios_TN)
    rho_TN = np.minimum(ratios_TN, max_rho)
    c_TN = decay * np.minimum(ratios_TN, max_c)
    discounts_TN = gamma * (~ends_TN).astype(np.float32)
    next_values_TN = np.concatenate((values_TN[1:], last_values_N[None]))
    # Where an episode was cut off its future is in the bootstrap, and nothing of the next episode counts.
    futures_TN = rewards_TN + gamma * bootstraps_TN
    corrections_TN = rho_TN * (futures_TN + discounts_TN * next_values_TN - values_TN)
    for t in range(len(rewards_TN) - 2, -1, -1):
        corrections_TN[t] += discounts_TN[t] * c_TN[t] * corrections_TN[t + 1]
    targets_TN = values_TN + corrections_TN
    next_targets_TN = np.concatenate((targets_TN[1:], last_values_N[None]))
    # With a decay the sum of later errors is decayed here as well, so that on-policy this is the advantage of GAE.
    blended_TN = next_values_TN + decay * (next_targets_TN - next_values_TN)
    advantages_TN = rho_TN * (futures_TN + discounts_TN * blended_TN - values_TN)
    return Vtrace(targets_TN.astype(np.float32), advantages_TN.astype(np.float32))
