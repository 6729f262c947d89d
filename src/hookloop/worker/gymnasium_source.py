"""Episodes of Gymnasium environments as rollouts: each begins with a seed of its own and is played to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookloop.curriculum import Lesson
from hookloop.errors import UnknownNameError
from hookloop.evaluation.results import Played, PlayedEpisode
from hookloop.evaluation.tasks import MOST_SEEDS, Wanted
from hookloop.rl.build import build_policy, lesson_env
from hookloop.rl.config import EnvConfig, PolicyConfig
from hookloop.rl.env_making import unscaled_envs
from hookloop.rl.evaluation import PolicyPlayer
from hookloop.rl.evaluation.recording import TransitionRecorder
from hookloop.rl.policies import Policy
from hookloop.worker.errors import WorkerError
from hookloop.worker.rollouts import Rollout

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST_SEED = MOST_SEEDS - 1_000_000  # episodes count on from the first seed


class GeneratingPlayer(PolicyPlayer):
    """Plays for a trainer to learn from."""

    recorder_type = TransitionRecorder


class GymnasiumSource:
    """A policy that plays episodes in environments of its own.

    Args:
        env: The environment; lessons say what differs in theirs.
        policy: The network.
        lessons: By name; empty where there is no curriculum.
        seed: The weights it begins with follow from it.
    """

    def __init__(
        self,
        env: EnvConfig,
        *,
        policy: PolicyConfig | None = None,
        lessons: Mapping[str, Lesson] | None = None,
        seed: int = 0,
    ) -> None:
        self.env = env
        self._envs = {name: lesson_env(env, lesson.env) for name, lesson in (lessons or {}).items()}
        self._version = 0
        sample = unscaled_envs(next(iter(self._envs.values()), env), 1)
        try:
            made = build_policy(PolicyConfig() if policy is None else policy, sample, seed=seed)
        finally:
            sample.close()
        self._player, self._generating = PolicyPlayer(made, env), GeneratingPlayer(made, env)
        self._generating.policy = self._player.policy

    @property
    def policy(self) -> Policy:
        """What plays."""
        return self._player.policy

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Act with these weights from now on."""
        try:
            self.policy.load_state_dict(dict(tensors))
        except RuntimeError as error:
            raise WorkerError(
                f"The weights of version {version} do not fit the worker's policy: {' '.join(str(error).split())} "
                "Give the worker the policy settings of the trainer."
            ) from error
        self._version = version

    def generate(self, lesson: str | None, count: int, *, seed: int) -> list[Rollout]:
        """Play ``count`` episodes, with actions drawn as in training."""
        wanted = Wanted(count, seed % _LARGEST_SEED, greedy=False, record=count)
        played = self._generating.play(self._env_of(lesson), wanted)
        return [self._rollout(lesson, episode) for episode in played.episodes]

    def play(self, lesson: str | None, wanted: Wanted) -> Played:
        """Play episodes for an evaluation."""
        return self._player.play(self._env_of(lesson), wanted)

    def close(self) -> None:
        """Nothing is held: environments live as long as what is played in them."""

    def _env_of(self, lesson: str | None) -> EnvConfig:
        if lesson is None:
            return self.env
        if lesson not in self._envs:
            raise UnknownNameError("lesson", lesson, self._envs, where="in this source")
        return self._envs[lesson]

    def _rollout(self, lesson: str | None, episode: PlayedEpisode) -> Rollout:
        assert episode.record is not None  # as many are recorded as are played
        about = {"end": episode.end, "recorded_steps": int(episode.record.about["recorded_steps"])}
        return Rollout(lesson, episode.return_, episode.length, self._version, episode.record.arrays, about=about)
