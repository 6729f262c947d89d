"""Problems whose environments are native code: they need the extra ``envpool``."""

from __future__ import annotations

from collections.abc import Mapping

from hookloop.config.settings import CheckpointConfig
from hookloop.curriculum.config import CurriculumConfig, Dependency, Lesson, LessonEnv
from hookloop.rl.config import EnvConfig, OptimizerConfig, PPOConfig, RLConfig, TrainerConfig


def lunarlander() -> RLConfig:
    """Land a module between two flags (EnvPool)."""
    return RLConfig(
        total_env_steps=1_000_000,
        env=EnvConfig(id="LunarLander-v3", num_envs=16, mode="envpool"),
        losses={"ppo": PPOConfig(entropy_coefficient=0.01)},
        trainer=TrainerConfig(
            horizon=1024, update_epochs=4, num_minibatches=256, gamma=0.999, gae_lambda=0.98,
            optimizer=OptimizerConfig(learning_rate=3e-4),
        ),
    )  # fmt: skip


def minigrid() -> RLConfig:
    """Fetch keys and open doors, in lessons from one small room to a corridor of six (EnvPool)."""
    return RLConfig(
        total_env_steps=500_000,
        # Codes as ones and zeros: nine times the steps per second of convolutions over this small a view.
        # The mission is left out: it says the same in all of these lessons. One thread, because a slot is small.
        env=EnvConfig(
            id="MiniGrid-DoorKey-5x5-v0", num_envs=64, mode="envpool", kwargs={"num_threads": 1},
            one_hot={"image": (11, 6, 4)},
        ),
        curriculum=CurriculumConfig(lessons=_ladder(MINIGRID_LADDER), slots=8, success_alpha=0.05),
        # The mean return falls when a harder lesson opens, so it does not say which checkpoint is the best.
        checkpoints=CheckpointConfig(metric="curriculum/mastery"),
        losses={"ppo": PPOConfig(entropy_coefficient=0.01)},
        trainer=TrainerConfig(
            horizon=64, update_epochs=4, num_minibatches=8, gamma=0.99, gae_lambda=0.95,
            optimizer=OptimizerConfig(learning_rate=1e-3),
        ),
    )  # fmt: skip


MINIGRID_LADDER = {
    "doorkey": "MiniGrid-DoorKey-5x5-v0",
    "unlock": "MiniGrid-Unlock-v0",
    "corridor_1": "MiniGrid-KeyCorridorS3R1-v0",
    "corridor_2": "MiniGrid-KeyCorridorS3R2-v0",
    "corridor_3": "MiniGrid-KeyCorridorS3R3-v0",
}


def _ladder(ids: Mapping[str, str]) -> dict[str, Lesson]:
    """Return lessons of which each opens the next."""
    lessons: dict[str, Lesson] = {}
    for name, id in ids.items():
        before = tuple(Dependency(lesson=last) for last in list(lessons)[-1:])
        lessons[name] = Lesson(env=LessonEnv(id=id), dependencies=before, start_threshold=0.5)
    return lessons
