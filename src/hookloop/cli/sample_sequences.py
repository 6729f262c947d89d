"""``hookloop sample`` for a run on sequences: prompts and what its model answers."""

from __future__ import annotations

import random
import sys

from hookloop.errors import ConfigError
from hookloop.runs.folder import RunFolder


def answer_prompts(
    folder: RunFolder,
    prompt: str,
    length: int,
    temperature: float,
    top_k: int | None,
    *,
    seed: int,
    checkpoint: str,
) -> int:
    """Write a prompt, or one of each lesson, with its response; the model says itself where that ends."""
    # Here and not above: a wrong argument should not cost the import of torch.
    from hookloop.checkpoints import CheckpointManager
    from hookloop.sequences.config import SequenceConfig
    from hookloop.sequences.lessons import make_lessons
    from hookloop.sequences.loading import load_player
    from hookloop.sequences.sampling import Drawing

    settings = SequenceConfig.model_validate(folder.read_config().settings)
    _, state = CheckpointManager(folder.checkpoints, retention=folder.read_retention()).load(checkpoint)
    player = load_player(settings, state["workload"])
    lessons = make_lessons(settings.curriculum).values()
    prompts = [prompt] if prompt else [lesson.prompt(random.Random(seed)) for lesson in lessons]
    room = player.model.block_size - max(map(len, prompts))
    if room < 1:
        raise ConfigError(
            f"The prompt has {len(prompt)} symbols, but the model reads {player.model.block_size} with its response."
        )
    _, texts = player.answer(prompts, min(length, room), seed, drawing=Drawing(temperature, top_k))
    for asked, text in zip(prompts, texts, strict=True):
        sys.stdout.write(f"{asked}{text}\n")
    return 0
