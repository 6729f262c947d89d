"""Models out of checkpoints, ready to answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hookloop.errors import EvaluationError
from hookloop.sequences.config import SequenceConfig
from hookloop.sequences.lessons import make_lessons
from hookloop.sequences.player import SequencePlayer
from hookloop.sequences.rollout import build_model, vocabulary_of


def load_player(config: SequenceConfig, workload: Mapping[str, Any]) -> SequencePlayer:
    """Return a player with the weights of a checkpoint.

    Args:
        config: The settings of the run.
        workload: The part of the saved state that the workload wrote.
    """
    lessons = make_lessons(config.curriculum)
    vocabulary = vocabulary_of(lessons)
    with torch.random.fork_rng(devices=[]):
        model = build_model(config.model, vocabulary, lessons)
    try:
        model.load_state_dict(dict(workload["learner"]["model"]))
    except (LookupError, TypeError, RuntimeError) as error:
        raise EvaluationError(
            f"The checkpoint does not fit the settings of its run ({type(error).__name__}: {error})."
        ) from error
    return SequencePlayer(model, vocabulary, pass_k=config.pass_k)
