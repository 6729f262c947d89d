"""Small runs on sequences, for the tests of what they promise."""

from __future__ import annotations

from typing import Any

from hookloop.curriculum import CurriculumConfig, Dependency, Lesson, LessonEnv
from hookloop.rl.config import OptimizerConfig
from hookloop.sequences import GRPOConfig, ImitationConfig, SequenceConfig, SequenceTrainer, SequenceTrainerConfig
from hookloop.sequences.config import RLOOConfig, SequenceLossConfig
from hookloop.supervised.config import GPTConfig

LOSSES: dict[str, SequenceLossConfig] = {
    "grpo": GRPOConfig(kl_coefficient=0.02),
    "rloo": RLOOConfig(train_schedule="from 2 until 5 epochs"),
    "imitation": ImitationConfig(),
}


def settings(losses: dict[str, SequenceLossConfig] | None = None, **changes: Any) -> SequenceConfig:
    lessons = {
        "copy": Lesson(env=LessonEnv(kwargs={"longest": 2, "alphabet": "abc"})),
        "reverse": Lesson(
            env=LessonEnv(kwargs={"longest": 2, "alphabet": "abc"}),
            dependencies=(Dependency(lesson="copy"),),
            start_threshold=0.0,
        ),
    }
    trainer: dict[str, Any] = {
        "prompts_per_slot": 4, "group_size": 4, "minibatch_groups": 4, "update_epochs": 2,
        "refresh_reference_every": 3, "optimizer": OptimizerConfig(learning_rate=3e-3),
    }  # fmt: skip
    return SequenceConfig(
        curriculum=CurriculumConfig(lessons=lessons, slots=3, eval_frequency=2, eval_n_examples=6, minimum_episodes=5),
        model=GPTConfig(layers=1, heads=2, width=16),
        losses=LOSSES if losses is None else losses,
        trainer=SequenceTrainerConfig(**{**trainer, **changes}),
    )


def ending(trainer: SequenceTrainer) -> dict[str, Any]:
    """Return what two runs that are the same agree in."""
    clocks = {name: value for name, value in trainer.state.clocks.reading().items() if name != "seconds"}
    return {
        "clocks": clocks,
        "losses": trainer.state.loss_stats,
        "curriculum": trainer.curriculum.state_dict(),
        "recent": list(trainer.workload.collector.recent),
        "weights": trainer.optimizer.flat.tolist(),
    }
