"""Token sequences: a small transformer learns to answer prompts from what its answers are worth.

::

    import hookloop.sequences as sequences
    from hookloop.curriculum import CurriculumConfig, Lesson

    config = sequences.SequenceConfig(curriculum=CurriculumConfig(lessons={"copy": Lesson()}))
    trainer = sequences.build_trainer(config, seed=0)
    trainer.train(total_env_steps=500_000)

The names are imported when they are first used, so that a configuration can be read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "Completions": "hookloop.sequences.sampling",
    "Drawing": "hookloop.sequences.sampling",
    "GRPO": "hookloop.sequences.losses",
    "GRPOConfig": "hookloop.sequences.config",
    "Imitation": "hookloop.sequences.losses",
    "ImitationConfig": "hookloop.sequences.config",
    "RLOO": "hookloop.sequences.losses",
    "RLOOConfig": "hookloop.sequences.config",
    "RolloutPerformer": "hookloop.sequences.rollout",
    "SequenceConfig": "hookloop.sequences.config",
    "SequenceLesson": "hookloop.sequences.lessons",
    "SequenceLoss": "hookloop.sequences.losses",
    "SequenceMinibatch": "hookloop.sequences.experience",
    "SequencePlayer": "hookloop.sequences.player",
    "SequenceSource": "hookloop.sequences.source",
    "SequenceSourceConfig": "hookloop.sequences.source_config",
    "SequenceTrainer": "hookloop.sequences.trainer",
    "SequenceTrainerConfig": "hookloop.sequences.config",
    "Sequences": "hookloop.sequences.experience",
    "Vocabulary": "hookloop.sequences.vocabulary",
    "build_trainer": "hookloop.sequences.build",
    "complete": "hookloop.sequences.sampling",
    "make_lesson": "hookloop.sequences.lessons",
    "register_lesson": "hookloop.sequences.lessons",
}

__all__ = [
    "GRPO",
    "RLOO",
    "Completions",
    "Drawing",
    "GRPOConfig",
    "Imitation",
    "ImitationConfig",
    "RLOOConfig",
    "RolloutPerformer",
    "SequenceConfig",
    "SequenceLesson",
    "SequenceLoss",
    "SequenceMinibatch",
    "SequencePlayer",
    "SequenceSource",
    "SequenceSourceConfig",
    "SequenceTrainer",
    "SequenceTrainerConfig",
    "Sequences",
    "Vocabulary",
    "build_trainer",
    "complete",
    "make_lesson",
    "register_lesson",
]

if TYPE_CHECKING:
    from hookloop.sequences.build import build_trainer
    from hookloop.sequences.config import (
        GRPOConfig,
        ImitationConfig,
        RLOOConfig,
        SequenceConfig,
        SequenceTrainerConfig,
    )
    from hookloop.sequences.experience import SequenceMinibatch, Sequences
    from hookloop.sequences.lessons import SequenceLesson, make_lesson, register_lesson
    from hookloop.sequences.losses import GRPO, RLOO, Imitation, SequenceLoss
    from hookloop.sequences.player import SequencePlayer
    from hookloop.sequences.rollout import RolloutPerformer
    from hookloop.sequences.sampling import Completions, Drawing, complete
    from hookloop.sequences.source import SequenceSource
    from hookloop.sequences.source_config import SequenceSourceConfig
    from hookloop.sequences.trainer import SequenceTrainer
    from hookloop.sequences.vocabulary import Vocabulary


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hookloop.sequences' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
