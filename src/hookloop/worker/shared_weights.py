"""Weights between the processes of one machine: in memory that all of them see, and that is gone when the last ends."""

from __future__ import annotations

import os
from collections.abc import Mapping

from torch import Tensor

from hookloop.pools.weights import WeightsReader, WeightsWriter, layout_of
from hookloop.worker.errors import WorkerError
from hookloop.worker.weights import WeightUpdate


class SharedWeightsServer:
    """The trainer's end of weights in shared memory.

    Hand ``descriptor`` to the workers when they are started: ``Popen(pass_fds=[server.descriptor])``.

    Args:
        like: Tensors like those to be served: names, types and shapes count. They are not served themselves.
    """

    def __init__(self, like: Mapping[str, Tensor]) -> None:
        self._writer = WeightsWriter(like)

    @property
    def descriptor(self) -> int:
        """The memory, as a file that is open in this process."""
        return self._writer.descriptor

    def serve(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer weights; workers that read others at this moment are not disturbed. A version names one content."""
        if version < 0:
            raise WorkerError(f"The version of weights is a number from 0 on, got {version}.")
        layout = layout_of(tensors)
        if layout != self._writer.layout:
            other = {part.name for part in layout} ^ {part.name for part in self._writer.layout}
            what = f"the names {sorted(other)[:5]}" if other else "types or shapes"
            raise WorkerError(f"The weights of version {version} are not like those the memory was made for: {what}.")
        self._writer.publish(version, tensors)

    def close(self) -> None:
        """Let go of the memory; it stays as long as a worker uses it."""
        self._writer.close()


class SharedWeightsReceiver:
    """A worker's end of weights in shared memory.

    Args:
        descriptor: That of the server, as this process has it; it stays open.
    """

    def __init__(self, descriptor: int) -> None:
        self._reader = WeightsReader(os.dup(descriptor))
        self._received = -1

    def receive(self) -> WeightUpdate | None:
        """Return the newest weights, whole, unless they were returned last; their memory is used again."""
        if self._reader.newest < 0 or self._reader.newest == self._received:
            return None
        version, tensors = self._reader.read()
        self._received = version
        return WeightUpdate(version, tensors)
