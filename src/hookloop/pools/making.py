"""Pools by the name of their engine."""

from __future__ import annotations

import os
from collections.abc import Callable

from hookloop.config.settings import ClusterSettings
from hookloop.errors import MissingExtraError, UnknownNameError
from hookloop.pools.errors import PoolUsageError
from hookloop.pools.inline import InlinePool
from hookloop.pools.protocol import MakePerformer, WorkerPool
from hookloop.pools.settings import PoolSettings

MakePool = Callable[[str, MakePerformer, int, PoolSettings], WorkerPool]


def make_pool(engine: str, workers: int, make: MakePerformer, *, settings: PoolSettings | None = None) -> WorkerPool:
    """Return a pool of this engine; with 0 workers the calling process computes, whatever the engine.

    Args:
        engine: One of ``ENGINES``; ``ray`` may have an address, as in ``ray://HOST:PORT``.
        workers: How many.
        make: Makes what computes, in each worker.
        settings: How the workers are treated.
    """
    name, _, address = engine.partition("://")
    if name not in ENGINES or (address and name != "ray"):
        raise UnknownNameError("engine", engine, ENGINES, where="for workers")
    if workers < 0:
        raise PoolUsageError(f"A pool cannot have {workers} workers; 0 computes in the calling process.")
    chosen = ENGINES[name] if workers else _inline
    return chosen(engine, make, workers, settings or PoolSettings())


def open_pool(where: ClusterSettings, workers: int, make: MakePerformer) -> WorkerPool:
    """Return a pool where the settings of a run say that its workers are."""
    settings = PoolSettings(cpus_per_worker=where.worker_cpus, resources=where.worker_resources)
    return make_pool("process" if where.cluster == "local" else where.cluster, workers, make, settings=settings)


def _inline(engine: str, make: MakePerformer, workers: int, settings: PoolSettings) -> WorkerPool:
    if workers:
        raise PoolUsageError(f"The engine 'inline' has no workers, got {workers}; take 0, or the engine 'process'.")
    return InlinePool(make)


def _process(engine: str, make: MakePerformer, workers: int, settings: PoolSettings) -> WorkerPool:
    from hookloop.pools.process import ProcessPool

    return ProcessPool(make, workers=workers, settings=settings)


def _ray(engine: str, make: MakePerformer, workers: int, settings: PoolSettings) -> WorkerPool:
    # Read when Ray is imported: the pool tells of workers that have ended, and not on the standard output.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "^A worker died or was killed")
    try:
        from hookloop.pools.ray_engine import RayPool
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise MissingExtraError(f"The engine {engine!r}", "ray") from error
    return RayPool(make, workers=workers, cluster=engine, settings=settings)


# A module that needs a package of its own, or torch, is imported by its function, when it is wanted.
ENGINES: dict[str, MakePool] = {"inline": _inline, "process": _process, "ray": _ray}
