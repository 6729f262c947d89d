"""Environments by the id under which Gymnasium knows them, and vector environments made elsewhere."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv

from hookloop.rl.envs.errors import EnvMismatchError, EnvProcessError, UnknownEnvError
from hookloop.rl.envs.gymnasium_envs.loop import SyncEnvs
from hookloop.rl.envs.gymnasium_envs.restorable import Restorable
from hookloop.rl.envs.gymnasium_envs.vector import VectorEnvs

Wrapper: TypeAlias = Callable[[gymnasium.Env], gymnasium.Env]
GymnasiumMode: TypeAlias = Literal["auto", "native", "sync", "async"]


def make_gymnasium_envs(
    id: str, num_envs: int, *, mode: GymnasiumMode, kwargs: Mapping[str, Any], wrappers: Sequence[Wrapper]
) -> VectorEnvs | SyncEnvs:
    """Make environments from Gymnasium's registry."""
    spec = _find_spec(id)
    has_native = spec.vector_entry_point is not None and not wrappers and not spec.additional_wrappers
    if mode == "native" or (mode == "auto" and has_native):
        if not has_native:
            raise EnvMismatchError(
                f"{id} cannot be made with mode='native': it has no vector environment of its own, or wrappers are "
                "asked for, which go around single environments. Use mode='sync' or 'async'."
            )
        vector_env = gymnasium.make_vec(spec, num_envs, vectorization_mode="vector_entry_point", **kwargs)
        return VectorEnvs(vector_env, who=id)
    if mode == "async":
        return VectorEnvs(_make_async(spec, num_envs, kwargs, wrappers), who=id)
    return SyncEnvs([_make_one(spec, kwargs, wrappers) for _ in range(num_envs)], who=id)


def wrap_envs(vector_env: VectorEnv) -> VectorEnvs:
    """Adapt a vector environment made elsewhere; call ``reset(seed)`` before the first step."""
    return VectorEnvs(vector_env)


def _make_async(spec: EnvSpec, num_envs: int, kwargs: Mapping[str, Any], wrappers: Sequence[Wrapper]) -> AsyncVectorEnv:
    def make() -> gymnasium.Env:
        if multiprocessing.parent_process() is not None:
            # A terminal sends Ctrl-C to these processes too, and the trainer needs them to finish its epoch and save.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return Restorable(_make_one(spec, kwargs, wrappers))

    # A fork copies the locks of torch's threads in whatever state they are; a fork server has none of them.
    # What it has imported, its children need not: 64 of them would spend half a minute on importing alone.
    multiprocessing.get_context("forkserver").set_forkserver_preload(["__main__", Restorable.__module__])
    # The observations may stay in shared memory: the adapter copies them into its own arrays anyway.
    try:
        return AsyncVectorEnv(
            [make] * num_envs, context="forkserver", copy=False, autoreset_mode=AutoresetMode.SAME_STEP
        )
    except (EOFError, ConnectionError) as error:
        raise EnvProcessError(
            f"The processes for {num_envs} x {spec.id} ended before they were ready; what they said is above. Each of "
            "them imports the main script anew: put what the script does under if __name__ == '__main__':, or use "
            "mode='sync'."
        ) from error


def _make_one(spec: EnvSpec, kwargs: Mapping[str, Any], wrappers: Sequence[Wrapper]) -> gymnasium.Env:
    # Gymnasium's passive checker would stay in the way of every step; the adapter checks the first ones itself.
    env = gymnasium.make(spec, disable_env_checker=True, **kwargs)
    for wrap in wrappers:
        env = wrap(env)
    return env


def _find_spec(id: str) -> EnvSpec:
    try:
        return gymnasium.spec(id)
    except gymnasium.error.Error as error:
        raise UnknownEnvError(
            id,
            gymnasium.registry,
            where="Gymnasium's registry",
            next_step=("Import the package that registers it, or list what there is with gymnasium.pprint_registry()."),
        ) from error
