"""Generalised advantage estimation, in place, over whole slabs.

Axes: T steps of collection, N environments.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def estimate_advantages(
    rewards_TN: Floats,
    values_TN: Floats,
    last_values_N: Floats,
    ends_TN: Flags,
    bootstraps_TN: Floats,
    *,
    gamma: float,
    gae_lambda: float,
    out_TN: Floats,
) -> None:
    """Write advantages into ``out_TN``.

    ``ends_TN`` says where an episode ended, by termination or truncation; ``bootstraps_TN`` holds the value of the
    true last observation where it was truncated and zero everywhere else, so that a cut-off episode is not
    taken for a failed one.
    """
    steps = rewards_TN.shape[0]
    going_on_TN = (~ends_TN).astype(np.float32)
    # One-step errors for all steps at once; only the discounted sum below needs the order of time.
    out_TN[:-1] = values_TN[1:]
    out_TN[-1] = last_values_N
    out_TN *= going_on_TN
    out_TN += bootstraps_TN
    out_TN *= gamma
    out_TN += rewards_TN
    out_TN -= values_TN
    going_on_TN *= gamma * gae_lambda
    for t in range(steps - 2, -1, -1):
        going_on_TN[t] *= out_TN[t + 1]
        out_TN[t] += going_on_TN[t]
