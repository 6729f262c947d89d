"""A pool whose workers are Ray actors, on this machine or on a cluster."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from typing import Any

import ray
import ray.exceptions
from ray import cloudpickle
from torch import Tensor

from hookloop.pools.assignments import Failure, Job
from hookloop.pools.crew import CrewPool, last_line
from hookloop.pools.errors import PoolUsageError
from hookloop.pools.protocol import MakePerformer, Plain
from hookloop.pools.ray_runtime import HERE, RayRuntime, connect, disconnect
from hookloop.pools.ray_seat import RaySeat
from hookloop.pools.ray_worker import Parcel, opened, parcel_of
from hookloop.pools.settings import PoolSettings
from hookloop.pools.status import Phase


class RayPool(CrewPool[RaySeat]):
    """Workers that are Ray actors, each with a performer of its own and one thread for tensors.

    Weights are put into Ray's object store once for each version, and a task names the version it is computed with: an
    actor fetches it before the first such task, so a late one never acts without. Ray itself restarts and repeats
    nothing; the pool does, as with other workers.

    Args:
        make: Makes what computes, in each worker; its modules can be imported on every machine of the cluster.
        workers: How many actors.
        cluster: ``ray`` starts Ray on this machine, or uses the cluster that RAY_ADDRESS names; ``ray://HOST:PORT``
            goes to a cluster that runs.
        settings: How the workers are treated, and what a cluster sets aside for each.
    """

    def __init__(
        self, make: MakePerformer, *, workers: int, cluster: str = HERE, settings: PoolSettings | None = None
    ) -> None:
        if workers < 1:
            raise PoolUsageError(f"A pool on Ray needs at least 1 worker, got {workers}; InlinePool has none.")
        settings = settings or PoolSettings()
        self._runtime = connect(cluster)
        self._weights: Any = None
        # Ray's own pickle also takes what a script defines.
        pickled = cloudpickle.dumps(make)  # pyright: ignore[reportPrivateImportUsage] - documented by Ray
        options = _options(self._runtime, settings)
        seats = [RaySeat(number, pickled, options, is_here=self._runtime.is_here) for number in range(workers)]
        super().__init__(seats, settings)
        self._finish = weakref.finalize(self, disconnect, self._runtime)
        for seat in seats:
            self._start(seat)

    def publish(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Offer newer weights; the tasks that are handed out from now on are computed with them."""
        self._require_open()
        self._admission.take_version(version)
        self._weights = ray.put(parcel_of({name: tensor.detach() for name, tensor in tensors.items()}))

    def close(self, deadline_seconds: float = 5.0) -> None:
        """End the workers, and Ray if it was started for this pool."""
        if not self._is_open:
            return
        _end(list(self._seats), deadline_seconds)
        self._weights = None
        self._finish()

    @property
    def _is_open(self) -> bool:
        return self._finish.alive

    def _parcel(self, payload: Plain) -> Parcel:
        return parcel_of(payload)

    def _start(self, seat: RaySeat) -> None:
        seat.start()

    def _send(self, seat: RaySeat, job: Job) -> None:
        seat.ask(job.serial, self._admission.version, self._weights, job.parcel)

    def _look(self, seconds: float) -> None:
        calls = {seat.call: seat for seat in self._seats if seat.call is not None}
        if not calls:  # every seat waits until its next worker may begin
            time.sleep(seconds)
        while calls:
            answered, _ = ray.wait(list(calls), num_returns=1, timeout=seconds)
            if not answered:
                return
            for call in answered:
                self._hear(calls[call], call)
            seconds = 0.0
            calls = {seat.call: seat for seat in self._seats if seat.call is not None}

    def _hear(self, seat: RaySeat, call: Any) -> None:
        try:
            answer = ray.get(call)
        except ray.exceptions.RayTaskError as error:
            trace = str(error)
            self._bury(seat, last_line(trace), trace)
        except ray.exceptions.RayError as error:
            self._bury(seat, _in_short(error))
        else:
            self._take(seat, answer)

    def _take(self, seat: RaySeat, answer: Any) -> None:
        if seat.status.phase == Phase.STARTING:
            seat.answered()
            seat.note_begun(answer)
        else:
            self._take_result(seat, seat.answered(), opened(answer))

    def _bury(self, seat: RaySeat, why: str = "", trace: str = "") -> None:
        if seat.status.phase == Phase.STARTING and not trace:
            left, all_there = (_in_words(found()) for found in (ray.available_resources, ray.cluster_resources))
            why = f"{why}; the cluster has {left} left of {all_there}"
        serial = seat.serial
        seat.plan_next()
        seat.leave()
        self._take_back(seat, serial, Failure(why, trace))

    def _dismiss(self, seat: RaySeat) -> None:
        _end([seat], 1.0)


def _end(seats: list[RaySeat], deadline_seconds: float) -> None:
    deadline = time.monotonic() + deadline_seconds
    ending = [call for seat in seats if (call := seat.ask_to_end()) is not None]
    if ending:
        ray.wait(ending, num_returns=len(ending), timeout=deadline_seconds)
    for seat in seats:
        if seat.is_taken:
            seat.leave()
    for seat in seats:
        seat.wait_until_left(deadline)


def _options(runtime: RayRuntime, settings: PoolSettings) -> dict[str, Any]:
    # Where Ray was started for this process, nobody else wants the cores; the number of workers is the caller's choice.
    cpus = 0 if runtime.is_here else settings.cpus_per_worker
    return {"num_cpus": cpus, "resources": dict(settings.resources)}


def _in_words(found: Mapping[str, float]) -> str:
    return ", ".join(f"{found[name]:g} {name}" for name in sorted(found) if ":" not in name and "memory" not in name)


def _in_short(error: ray.exceptions.RayError) -> str:
    """Return what Ray says of the end of a worker, without its guesses at the cause and without the actor's numbers."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\t")]
    said = lines[-1].partition(" Some common causes")[0] if lines else ""
    return f"its worker is lost: {type(error).__name__}: {said}"
