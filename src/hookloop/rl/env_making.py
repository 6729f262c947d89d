"""From the settings of environments to environments, as training and evaluation both see them."""

from __future__ import annotations

from hookloop.rl.config import EnvConfig
from hookloop.rl.envs import Envs, OneHotObservations, make_envs


def unscaled_envs(config: EnvConfig, num_envs: int) -> Envs:
    """Return environments whose observations have the form that the settings ask for, and are not scaled yet."""
    envs: Envs = make_envs(config.id, num_envs, mode=config.mode, kwargs=config.kwargs)
    return envs if config.one_hot is None else OneHotObservations(envs, config.one_hot)
