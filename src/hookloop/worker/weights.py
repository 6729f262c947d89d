"""How weights get from a trainer to its workers: by version, whole, and never a placeholder.

A trainer serves, a worker receives. ``receive`` never waits: it returns what is there if that is not what it returned
last, and None otherwise. How long to wait is the worker's affair.

============================  ==================================================================================
``LocalWeights``              both ends within one process
``SharedWeightsServer``       between processes of one machine, through memory that they share;
``SharedWeightsReceiver``     the receiver's end of it
``CheckpointWeights``         from the committed checkpoints of a run, wherever their folder can be read
============================  ==================================================================================

An engine with objects of its own (Ray) brings a class with the same two methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hookloop.errors import CheckpointError
from hookloop.worker.errors import WorkerError

if TYPE_CHECKING:
    from torch import Tensor

Plain = Any


@dataclass(frozen=True, slots=True)
class WeightUpdate:
    """Weights, and which they are."""

    version: int
    tensors: Mapping[str, Tensor]
    id: str = ""
    """A name that no other content can have, where the transport knows one: that of a checkpoint."""


class WeightServer(Protocol):
    """The trainer's end of a way that weights take."""

    def serve(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer weights; they are copied before this returns."""
        ...


class WeightReceiver(Protocol):
    """A worker's end of a way that weights take."""

    def receive(self) -> WeightUpdate | None:
        """Return the newest weights if they are not those that were returned last; None if there is nothing new."""
        ...


class LocalWeights:
    """Both ends in one process: for a worker beside its trainer, and for tests."""

    def __init__(self) -> None:
        self._offered: WeightUpdate | None = None

    def serve(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer weights."""
        copied = {name: tensor.detach().clone() for name, tensor in tensors.items()}
        self._offered = WeightUpdate(version, copied)

    def receive(self) -> WeightUpdate | None:
        """Return the weights that were offered last, once."""
        offered, self._offered = self._offered, None
        return offered


class Committed(Protocol):
    """A checkpoint that is durable, as far as a worker looks."""

    @property
    def id(self) -> str:
        """A name that no other content can ever have."""
        ...

    @property
    def manifest(self) -> Any:
        """What it says of itself; a worker looks at its ``clocks``."""
        ...


class Checkpoints(Protocol):
    """The checkpoints of a run: a ``hookloop.checkpoints.CheckpointStore``."""

    def names(self) -> Sequence[str]:
        """Return the names of all committed checkpoints, oldest first."""
        ...

    def look(self, name: str) -> Committed:
        """Return a checkpoint by what it says of itself."""
        ...

    def read_latest(self, *, sets_aside: bool) -> tuple[Committed, Plain] | None:
        """Return the newest one of which every byte is sound, with its state; None if there is none yet."""
        ...


class CheckpointWeights:
    """Weights out of the checkpoints of a run: the newest that verifies.

    Nothing is written, and nothing is moved. A run that goes back to an older checkpoint takes its workers back with
    it: what counts is the newest checkpoint there is, not the highest version there ever was.

    Args:
        checkpoints: A ``hookloop.checkpoints.CheckpointStore`` of the run's folder.
        path: Where the weights are in the saved state; those of an RL run by default.
        clock: The clock of the run that is the version.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        *,
        path: Sequence[str] = ("workload", "learner", "policy"),
        clock: str = "policy_version",
    ) -> None:
        self._checkpoints = checkpoints
        self._path = tuple(path)
        self._clock = clock
        self._received = ""

    def receive(self) -> WeightUpdate | None:
        """Return the weights of the newest sound checkpoint, unless they were returned last."""
        names = self._checkpoints.names()
        if not names or self._is_known(names[-1]):
            return None
        try:
            found = self._checkpoints.read_latest(sets_aside=False)
        except CheckpointError:
            if self._checkpoints.names() != names:
                return None  # the run has let go of what was being read: look again
            raise
        if found is None or found[0].id == self._received:
            return None
        checkpoint, state = found
        self._received = checkpoint.id
        return WeightUpdate(self._version_of(checkpoint), self._tensors(checkpoint, state), checkpoint.id)

    def _is_known(self, name: str) -> bool:
        """Tell, by a look at a manifest alone, that there is nothing new."""
        if not self._received:
            return False
        try:
            return self._checkpoints.look(name).id == self._received
        except CheckpointError:
            return False  # damaged, or gone meanwhile: the whole look decides

    def _version_of(self, checkpoint: Committed) -> int:
        clocks = checkpoint.manifest.clocks
        if self._clock not in clocks:
            raise WorkerError(
                f"The checkpoint {checkpoint.id} has no clock {self._clock!r} to be the version of its weights; "
                f"it has {', '.join(clocks)}."
            )
        return int(clocks[self._clock])

    def _tensors(self, checkpoint: Committed, state: Plain) -> Mapping[str, Tensor]:
        found = state
        for name in self._path:
            if not isinstance(found, Mapping) or name not in found:
                where = "/".join(self._path)
                raise WorkerError(f"The checkpoint {checkpoint.id} has no weights at {where}: {name!r} is missing.")
            found = found[name]
        return found
