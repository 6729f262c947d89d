"""Make environments by id, whoever simulates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from hookloop.rl.envs.base import Envs
from hookloop.rl.envs.envpool_envs import EnvPoolEnvs
from hookloop.rl.envs.errors import EnvMismatchError
from hookloop.rl.envs.gymnasium_envs.making import Wrapper, make_gymnasium_envs

EnvMode: TypeAlias = Literal["auto", "native", "sync", "async", "envpool"]
_MODES = ("auto", "native", "sync", "async", "envpool")


def make_envs(
    id: str,
    num_envs: int,
    *,
    mode: EnvMode = "auto",
    kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[Wrapper] = (),
    seed: int | None = None,
) -> Envs:
    """Make ``num_envs`` environments that step together.

    Args:
        id: As Gymnasium (or, with ``mode="envpool"``, EnvPool) knows it, such as ``"CartPole-v1"``.
        num_envs: How many.
        mode: ``native`` is the environment's own vector implementation, ``sync`` steps one after the other in this
            process, ``async`` runs each in a process of its own, ``envpool`` in threads of C++. ``auto`` is native
            if there is such an implementation and no wrappers are asked for, else sync.
        kwargs: Passed on to each environment.
        wrappers: Called around each single environment, in order; not for native and envpool.
        seed: If given, the environments are reset with it; else call ``reset(seed)`` before the first step.
    """
    if mode not in _MODES:
        raise EnvMismatchError(f"mode must be one of {', '.join(_MODES)}, got {mode!r}.")
    if num_envs < 1:
        raise EnvMismatchError(f"num_envs must be at least 1, got {num_envs}.")
    if mode == "envpool":
        if wrappers:
            raise EnvMismatchError("EnvPool takes no wrappers around single environments; leave them out, or use sync.")
        envs: Envs = EnvPoolEnvs(id, num_envs, kwargs=kwargs)
    else:
        envs = make_gymnasium_envs(id, num_envs, mode=mode, kwargs=kwargs or {}, wrappers=wrappers)
    if seed is not None:
        envs.reset(seed)
    return envs
