"""From settings to a trainer of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hookloop.core import HookManager
from hookloop.core.signals import SECOND
from hookloop.pools import making
from hookloop.sequences.config import GRPOConfig, ImitationConfig, RLOOConfig, SequenceConfig
from hookloop.sequences.losses import GRPO, RLOO, Imitation, SequenceLoss
from hookloop.sequences.trainer import OpenPool, SequenceTrainer


def build_trainer(
    config: SequenceConfig,
    *,
    open_pool: OpenPool | None = None,
    hooks: HookManager | Sequence[object] = (),
    seed: int = 0,
    second_signal: SECOND = "raise",
) -> SequenceTrainer:
    """Build everything a run needs; every random number in it follows from ``seed``.

    Args:
        config: The settings.
        open_pool: Makes the pool that draws; by default one with as many workers as the settings say.
        hooks: What else should happen.
        seed: The root of all randomness.
        second_signal: What a second Ctrl-C does.
    """
    workers = config.workers or (0 if config.cluster == "local" else config.curriculum.slots)
    return SequenceTrainer(
        config,
        losses=[build_loss(name, loss) for name, loss in config.losses.items()],
        open_pool=open_pool or partial(making.open_pool, config, workers),
        hooks=hooks,
        seed=seed,
        second_signal=second_signal,
    )


def build_loss(name: str, config: RLOOConfig | GRPOConfig | ImitationConfig) -> SequenceLoss:
    """Build a loss."""
    options = config.model_dump(exclude={"kind"})
    if isinstance(config, RLOOConfig):
        return RLOO(name=name, **options)
    if isinstance(config, GRPOConfig):
        return GRPO(name=name, **options)
    return Imitation(name=name, **options)
