"""New weights for a worker: looked for before each step, waited for within bounds, never done without."""

from __future__ import annotations

from collections.abc import Callable

from hookloop.core import TrainingLoop
from hookloop.worker.config import WorkerConfig
from hookloop.worker.counts import Counters
from hookloop.worker.errors import NoWeightsError
from hookloop.worker.source import RolloutSource
from hookloop.worker.status import StatusWatch
from hookloop.worker.weights import WeightReceiver


class WeightIntake:
    """Hands new weights to the source before each step.

    Args:
        config: How long to wait.
        source: Who acts with them.
        receiver: Where they come from; None if the source keeps those it began with.
        status: Whether the run goes on; looked at while waiting, too.
        counters: What is counted.
        time_ns: The stopwatch.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        config: WorkerConfig,
        source: RolloutSource,
        receiver: WeightReceiver | None,
        status: StatusWatch,
        counters: Counters,
        *,
        time_ns: Callable[[], int],
        sleep: Callable[[float], None],
    ) -> None:
        self._config = config
        self._source = source
        self._receiver = receiver
        self._status = status
        self._counters = counters
        self._time_ns = time_ns
        self._sleep = sleep
        self.has_weights = receiver is None

    def refresh(self, loop: TrainingLoop) -> bool:
        """Take newer weights, waiting for them as the settings say; False if the worker is asked to stop."""
        begun_ns = self._time_ns()
        while True:
            self._status.check(loop)
            if loop.should_leave():
                return False
            if self._take(loop):
                return True
            if (self._time_ns() - begun_ns) / 1e9 >= self._most_seconds():
                return self._go_on()
            self._sleep(self._config.poll_seconds)

    def _take(self, loop: TrainingLoop) -> bool:
        update = None if self._receiver is None else self._receiver.receive()
        if update is None:
            return False
        self._source.take_weights(update.version, update.tensors)
        self.has_weights = True
        self._counters.add(weight_updates=1)
        loop.policy_updated(update.version)
        return True

    def _most_seconds(self) -> float:
        if self._receiver is None:
            return 0.0
        config = self._config
        return config.max_weight_transfer_wait_seconds if self.has_weights else config.first_weights_wait_seconds

    def _go_on(self) -> bool:
        if not self.has_weights:
            raise NoWeightsError(
                f"No weights have come within {self._config.first_weights_wait_seconds:g} seconds, and a worker never "
                "acts without. Start the trainer, look at where the worker receives from, or raise "
                "first_weights_wait_seconds."
            )
        if self._receiver is not None:
            self._counters.add(steps_without_news=1)
        return True
