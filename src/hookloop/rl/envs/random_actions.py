"""Actions drawn at random, within the bounds and the masks."""

from __future__ import annotations

import numpy as np

from hookloop.rl.specs import ActionSpec, Array, ContinuousActions, DiscreteActions


def random_actions(
    action: ActionSpec, num_envs: int, generator: np.random.Generator, masks: Array | None = None
) -> Array:
    """Draw one action for each environment, uniformly where there are bounds, and never a masked one."""
    if isinstance(action, ContinuousActions):
        low, high = action.bounds("float64")
        is_bounded = np.isfinite(low) & np.isfinite(high)
        within = generator.uniform(
            np.where(is_bounded, low, 0.0), np.where(is_bounded, high, 1.0), (num_envs, *low.shape)
        )
        free = np.clip(generator.standard_normal((num_envs, *low.shape)), low, high)
        return np.where(is_bounded, within, free).astype(np.float32)
    if isinstance(action, DiscreteActions):
        return _choices(action.n, num_envs, generator, masks)
    ends = np.cumsum(action.nvec)
    parts = [None if masks is None else masks[:, end - n : end] for n, end in zip(action.nvec, ends, strict=True)]
    columns = [_choices(n, num_envs, generator, part) for n, part in zip(action.nvec, parts, strict=True)]
    return np.stack(columns, axis=1)


def _choices(n: int, num_envs: int, generator: np.random.Generator, masks: Array | None) -> Array:
    if masks is None:
        return generator.integers(n, size=num_envs, dtype=np.int64)
    # The largest of independent draws is uniform among those allowed; masked ones lie below every draw.
    return np.argmax(np.where(masks, generator.random((num_envs, n)), -1.0), axis=1)
