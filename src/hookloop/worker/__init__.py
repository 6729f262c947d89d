"""Rollout workers: loops of their own that generate with a trainer's newest weights, and hooks for everything else.

::

    from hookloop.worker import RolloutWorker, WorkerConfig

    worker = RolloutWorker(config, weights=weights)
    worker.register_hook(hook)
    worker.run()

The names are imported when they are first used, so that settings can be read without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "CheckpointWeights": "hookloop.worker.weights",
    "Counters": "hookloop.worker.counts",
    "GymnasiumSource": "hookloop.worker.gymnasium_source",
    "GymnasiumSourceConfig": "hookloop.worker.gymnasium_config",
    "LocalWeights": "hookloop.worker.weights",
    "NoWeightsError": "hookloop.worker.errors",
    "ReplayBuffer": "hookloop.worker.replay_buffer",
    "ReplayBufferConfig": "hookloop.worker.replay_config",
    "Rollout": "hookloop.worker.rollouts",
    "RolloutSource": "hookloop.worker.source",
    "RolloutWorker": "hookloop.worker.worker",
    "RunStatus": "hookloop.worker.status",
    "SharedWeightsReceiver": "hookloop.worker.shared_weights",
    "SharedWeightsServer": "hookloop.worker.shared_weights",
    "SourceConfig": "hookloop.worker.source",
    "WeightReceiver": "hookloop.worker.weights",
    "WeightServer": "hookloop.worker.weights",
    "WeightUpdate": "hookloop.worker.weights",
    "WorkerConfig": "hookloop.worker.config",
    "WorkerCounts": "hookloop.worker.counts",
    "WorkerError": "hookloop.worker.errors",
    "WorkerResult": "hookloop.worker.worker",
    "WorkerTracker": "hookloop.worker.tracker",
}

__all__ = [
    "CheckpointWeights",
    "Counters",
    "GymnasiumSource",
    "GymnasiumSourceConfig",
    "LocalWeights",
    "NoWeightsError",
    "ReplayBuffer",
    "ReplayBufferConfig",
    "Rollout",
    "RolloutSource",
    "RolloutWorker",
    "RunStatus",
    "SharedWeightsReceiver",
    "SharedWeightsServer",
    "SourceConfig",
    "WeightReceiver",
    "WeightServer",
    "WeightUpdate",
    "WorkerConfig",
    "WorkerCounts",
    "WorkerError",
    "WorkerResult",
    "WorkerTracker",
]

if TYPE_CHECKING:
    from hookloop.worker.config import WorkerConfig
    from hookloop.worker.counts import Counters, WorkerCounts
    from hookloop.worker.errors import NoWeightsError, WorkerError
    from hookloop.worker.gymnasium_config import GymnasiumSourceConfig
    from hookloop.worker.gymnasium_source import GymnasiumSource
    from hookloop.worker.replay_buffer import ReplayBuffer
    from hookloop.worker.replay_config import ReplayBufferConfig
    from hookloop.worker.rollouts import Rollout
    from hookloop.worker.shared_weights import SharedWeightsReceiver, SharedWeightsServer
    from hookloop.worker.source import RolloutSource, SourceConfig
    from hookloop.worker.status import RunStatus
    from hookloop.worker.tracker import WorkerTracker
    from hookloop.worker.weights import CheckpointWeights, LocalWeights, WeightReceiver, WeightServer, WeightUpdate
    from hookloop.worker.worker import RolloutWorker, WorkerResult


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hookloop.worker' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
