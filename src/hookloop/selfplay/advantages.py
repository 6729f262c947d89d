"""Advantages where two players take turns: what is good for one is as bad for the other.

Axes: T steps of collection, N games.
"""

from __future__ import annotations

import numpy as np

from hookloop.rl.advantages import Flags, Floats, estimate_advantages
from hookloop.rl.vtrace import Vtrace, vtrace


def estimate_signed_advantages(
    rewards_TN: Floats,
    values_TN: Floats,
    first_last_values_N: Floats,
    ends_TN: Flags,
    bootstraps_TN: Floats,
    signs_TN: Floats,
    *,
    gamma: float,
    gae_lambda: float,
    out_TN: Floats,
) -> None:
    """Write the advantages of the movers into ``out_TN``.

    Rewards and values belong to the seat that moves at their step, bootstraps to the one that has moved; the
    last values, of the positions nobody has moved in yet, are the first seat's. Signs are 1 where the first seat
    moves and -1 where the second does. All is looked at with the eyes of the first
    seat, where it is an ordinary sum over time, and the result given back to the movers. A change of sign is exact,
    so nothing is lost on the way; and a seat that moves twice in a row is in no way special.
    """
    estimate_advantages(
        rewards_TN * signs_TN,
        values_TN * signs_TN,
        first_last_values_N,
        ends_TN,
        bootstraps_TN * signs_TN,
        gamma=gamma,
        gae_lambda=gae_lambda,
        out_TN=out_TN,
    )
    out_TN *= signs_TN


def signed_vtrace(
    log_ratios_TN: Floats,
    rewards_TN: Floats,
    values_TN: Floats,
    first_last_values_N: Floats,
    ends_TN: Flags,
    bootstraps_TN: Floats,
    signs_TN: Floats,
    *,
    gamma: float,
    decay: float = 1.0,
) -> Vtrace:
    """Return the targets and advantages of the movers, for moves that older weights have chosen.

    It is V-trace with the eyes of the first seat, in the same way. How much likelier a move has become has no sign: it
    is as much for whom the move is bad.
    """
    first = vtrace(
        log_ratios_TN,
        rewards_TN * signs_TN,
        values_TN * signs_TN,
        first_last_values_N,
        ends_TN,
        bootstraps_TN * signs_TN,
        gamma=gamma,
        decay=decay,
    )
    return Vtrace(first.targets * signs_TN, first.advantages * signs_TN)


def signs_of(seats: np.ndarray) -> Floats:
    """Return 1 for the first seat and -1 for the second."""
    return (1 - 2 * seats).astype(np.float32)
