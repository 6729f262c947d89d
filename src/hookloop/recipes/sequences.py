"""Sequences of symbols that are learned from what they are worth."""

from __future__ import annotations

from hookloop.config.settings import CheckpointConfig
from hookloop.curriculum.config import CurriculumConfig, Dependency, Lesson, LessonEnv
from hookloop.rl.config import OptimizerConfig
from hookloop.rl.values import Linear
from hookloop.sequences.config import GRPOConfig, ImitationConfig, SequenceConfig, SequenceTrainerConfig
from hookloop.supervised.config import GPTConfig


def arithmetic() -> SequenceConfig:
    """Learn to add by reward, from single digits up (small GPT)."""
    return SequenceConfig(
        total_env_steps=3_000_000,
        # A lesson that has just opened succeeds hardly ever, which adaptive weights take for hopeless: hence the floor.
        curriculum=CurriculumConfig(
            lessons=_sums(9, 29, 99), slots=8, success_alpha=0.01, minimum_sample_probability=0.2,
            eval_n_examples=200,
        ),
        model=GPTConfig(layers=2, heads=4, width=64),
        # One run with rewards alone stopped at half of the single digits: in the end the completions of a prompt were
        # all right or all wrong, and taught nothing. So where none is right, the answer is shown.
        losses={"grpo": GRPOConfig(), "imitation": ImitationConfig()},
        trainer=SequenceTrainerConfig(
            prompts_per_slot=32, group_size=4, minibatch_groups=64,
            optimizer=OptimizerConfig(learning_rate=3e-3, max_grad_norm=1.0),
            values={"optimizer.learning_rate": Linear(3e-3, 2e-4)},
        ),
        # The mean reward falls when a harder lesson opens, so it does not say which checkpoint is the best.
        checkpoints=CheckpointConfig(metric="curriculum/mastery"),
    )  # fmt: skip


def _sums(*largest: int) -> dict[str, Lesson]:
    """Return lessons of sums, each opened by the one before."""
    lessons: dict[str, Lesson] = {}
    for number in largest:
        before = tuple(Dependency(lesson=last) for last in list(lessons)[-1:])
        env = LessonEnv(id="arithmetic", kwargs={"largest": number})
        lessons[f"up_to_{number}"] = Lesson(env=env, dependencies=before, start_threshold=0.7)
    return lessons
