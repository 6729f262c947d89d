"""A policy that plays, frozen at a moment of training, in environments that are its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ValidationError

from hookloop.errors import ConfigError, EvaluationError
from hookloop.evaluation.results import Played
from hookloop.evaluation.tasks import Render, Wanted
from hookloop.rl.config import EnvConfig
from hookloop.rl.env_making import unscaled_envs
from hookloop.rl.envs import Envs, NormalizedObservations, WrappedEnvs
from hookloop.rl.evaluation.playing import Session
from hookloop.rl.evaluation.recording import Recorder
from hookloop.rl.policies import Policy


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How training scales observations, at one moment."""

    statistics: Mapping[str, Any]
    clip: float


class PolicyPlayer:
    """Plays with a copy of a policy; training can go on, and nothing of it is touched.

    The copy is in evaluation mode (no dropout, no statistics of batches) and observations are scaled as in training,
    by statistics that stand still. Returns are those the environment gives.

    Args:
        policy: What to play with.
        env: The environment of training; without it every simulation has to name its own.
        normalisation: How training scales observations; None if it does not.
    """

    recorder_type: ClassVar[type[Recorder]] = Recorder
    """What is recorded of episodes: all that a person wants to see, or what is learned from."""

    def __init__(
        self, policy: Policy, env: EnvConfig | None = None, *, normalisation: Normalisation | None = None
    ) -> None:
        try:
            self.policy = copy.deepcopy(policy).eval()
        except (RuntimeError, TypeError) as error:
            raise EvaluationError(
                f"The policy cannot be copied, and an evaluation plays with a copy: {error}. Keep no tensors that "
                "belong to a graph, and nothing live, in the attributes of its network."
            ) from error
        self.env = env
        self.normalisation = normalisation

    def play(self, env: Any, wanted: Wanted) -> Played:
        """Play episodes; ``env`` says what differs from training: settings by name, an id, or None."""
        config = env_settings(self.env, env)
        num_envs = min(wanted.episodes, wanted.num_envs or config.num_envs)
        return Session(
            self.policy, lambda: self._make(config, num_envs, wanted.render), wanted, self.recorder_type
        ).play()

    def _make(self, config: EnvConfig, num_envs: int, render: Render | None) -> Envs:
        if render is not None:  # only single environments can be drawn
            config = config.model_copy(update={"mode": "sync", "kwargs": {**config.kwargs, "render_mode": render}})
        envs = unscaled_envs(config, num_envs)
        if self.normalisation is not None:
            scaled = NormalizedObservations(envs, self.normalisation.clip)
            scaled.load_statistics(self.normalisation.statistics)
            scaled.freeze()
            envs = scaled
        if envs.observation != self.policy.observation_spec or envs.action != self.policy.action_spec:
            envs.close()
            raise EvaluationError(
                f"The policy cannot play in {config.id}: it was made for {self.policy.observation_spec} and "
                f"{self.policy.action_spec}, and there are {envs.observation} and {envs.action}."
            )
        return envs


def player_of(policy: Policy, envs: Envs, env: EnvConfig | None) -> PolicyPlayer:
    """Return a player with the weights and the scaling that training has now."""
    while isinstance(envs, WrappedEnvs):
        if isinstance(envs, NormalizedObservations):
            normalisation = Normalisation(copy.deepcopy(envs.statistics_state()), envs.clip)
            return PolicyPlayer(policy, env, normalisation=normalisation)
        envs = envs.envs
    return PolicyPlayer(policy, env)


def env_settings(base: EnvConfig | None, changes: Any) -> EnvConfig:
    """Return the settings of a simulation, given those of training and what differs."""
    if isinstance(changes, EnvConfig):
        return changes
    if changes is None:
        if base is None:
            raise ConfigError(
                "An evaluation in the environment of training needs its settings: give the Trainer "
                "env=EnvConfig(id=...), or name simulations in the evaluation's suite."
            )
        return base
    wanted: Any = {"id": changes} if isinstance(changes, str) else changes
    if base is not None and hasattr(wanted, "id") and hasattr(wanted, "kwargs"):  # as a lesson says it
        return base.model_copy(update={"id": wanted.id or base.id, "kwargs": {**base.kwargs, **wanted.kwargs}})
    if not isinstance(wanted, Mapping):
        raise ConfigError(f"A simulation is settings by name, or an environment's id, got {changes!r:.100}.")
    known = {} if base is None else base.model_dump()
    if "id" in wanted and wanted["id"] != known.get("id"):
        known.pop("kwargs", None)  # they were those of the other environment
    try:
        return EnvConfig.model_validate({**known, **wanted})
    except ValidationError as error:
        raise ConfigError(f"A simulation has settings that mean nothing: {error}") from error
