"""An environment that can be asked for its state from another process."""

from __future__ import annotations

from typing import Any

import gymnasium

from hookloop.rl.envs.gymnasium_envs.layers import EnvLayers


class Restorable(gymnasium.Wrapper):
    """Tells and takes the state of an environment through the attribute ``worker_state``.

    Wrap each environment of an ``AsyncVectorEnv`` in it, outermost, to make a resume exact; ``make_envs`` does. State
    travels between the processes by the pipes of Gymnasium and never by a file.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self._layers: EnvLayers | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; the first time, remember what it looks like when new."""
        result = self.env.reset(seed=seed, options=options)
        if self._layers is None:
            self._layers = EnvLayers([self.env])
        return result

    @property
    def worker_state(self) -> tuple[dict[str, Any], str]:
        """The state, and the reason why it is not everything."""
        captured = (self._layers or EnvLayers([self.env])).capture()
        return captured.state, captured.inexact_because

    @worker_state.setter
    def worker_state(self, state: dict[str, Any]) -> None:
        if self._layers is None:
            self._layers = EnvLayers([self.env])
        self._layers.restore(state)
