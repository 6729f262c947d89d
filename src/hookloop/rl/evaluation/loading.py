"""Policies out of checkpoints, ready to play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookloop.errors import EvaluationError
from hookloop.rl.build import build_policy
from hookloop.rl.config import EnvConfig, RLConfig
from hookloop.rl.env_making import unscaled_envs
from hookloop.rl.envs import NormalizedObservations
from hookloop.rl.evaluation.player import Normalisation, PolicyPlayer


def load_player(config: RLConfig, workload: Mapping[str, Any]) -> PolicyPlayer:
    """Return a player with the weights and the scaling of a checkpoint.

    Args:
        config: The settings of the run.
        workload: The part of the saved state that the workload wrote.
    """
    envs = unscaled_envs(config.env, 1)
    normalisation = None
    try:
        if config.env.normalise_observations:
            scaled = NormalizedObservations(envs)
            normalisation = Normalisation(_saved_statistics(config.env, workload), scaled.clip)
            envs = scaled
        policy = build_policy(config.policy, envs)
        policy.load_state_dict(dict(workload["learner"]["policy"]))
    except (LookupError, TypeError, RuntimeError) as error:
        raise EvaluationError(
            f"The checkpoint does not fit the settings of its run ({type(error).__name__}: {error})."
        ) from error
    finally:
        envs.close()
    return PolicyPlayer(policy, config.env, normalisation=normalisation)


def _saved_statistics(env: EnvConfig, workload: Mapping[str, Any]) -> Mapping[str, Any]:
    saved = workload["collector"]["envs"]
    return (saved["envs"] if env.normalise_rewards else saved)["statistics"]
