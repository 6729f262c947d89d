"""The rollout worker: a loop of its own that generates with the newest weights, and hooks for everything else."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hookloop.core import HookContext, HookManager, LoopResult, TrainerState, TrainingLoop, derive_seed
from hookloop.core.signals import SECOND
from hookloop.errors import ConfigError
from hookloop.evaluation.defaults import default_evaluations
from hookloop.worker.config import WorkerConfig
from hookloop.worker.counts import WORKER_STEPS, Counters, WorkerCounts
from hookloop.worker.intake import WeightIntake
from hookloop.worker.lessons import LessonChoice, SourcePlayer, curriculum_by_name
from hookloop.worker.source import RolloutSource
from hookloop.worker.status import ReadStatus, StatusWatch
from hookloop.worker.tracker import RowTracker, WorkerTracker
from hookloop.worker.weights import WeightReceiver
from hookloop.worker.workload import Deliver, RolloutWorkload

Plain = Any

RESULT_VERSION = 1


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """How a worker ended; ``version`` changes when a field changes its meaning."""

    version: int
    outcome: str
    run: WorkerCounts
    """What was done since the run began."""
    attempt: WorkerCounts
    """What was done in this process."""
    weight_version: int
    loop: LoopResult


class RolloutWorker:
    """Generates rollouts, lesson by lesson, with the newest weights of a trainer.

    Hooks are called on each step: a batch of rollouts that was generated and delivered. The evaluations that the
    curriculum asks for are registered from the start; ``clear_hooks`` takes them away, too.

    Args:
        config: The settings.
        weights: Where the trainer's weights come from; not for ``config.weights="initial"``.
        status: Returns what is known of the run; the worker stops when it is over.
        deliver: Takes the rollouts of each step: a ``ReplayBuffer.add``, or anything that takes a list.
        source: What generates, if it was not made from the settings.
        tracker: What ``context.worker.tracker`` is; by default it logs to the metrics of the run.
        watch_signals: Take SIGINT and SIGTERM while running.
        second_signal: What a second signal does: ``raise`` or ``exit``.
        time_ns: The stopwatch.
        wall_time: What time it is, in seconds since 1970.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        config: WorkerConfig,
        *,
        weights: WeightReceiver | None = None,
        status: ReadStatus | None = None,
        deliver: Deliver | None = None,
        source: RolloutSource | None = None,
        tracker: WorkerTracker | None = None,
        watch_signals: bool = True,
        second_signal: SECOND = "raise",
        time_ns: Callable[[], int] = time.perf_counter_ns,
        wall_time: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.config = config
        self.curriculum = curriculum_by_name(config.curriculum)
        lessons = {} if config.curriculum is None else config.curriculum.lessons
        self.source = (
            source if source is not None else config.source.build(lessons, seed=derive_seed(config.seed, "policy"))
        )
        self.counters = Counters()
        self._weights = _fitting_weights(config, weights)
        self._status = StatusWatch(status, config.status_seconds, time_ns)
        intake = WeightIntake(
            config, self.source, self._weights, self._status, self.counters, time_ns=time_ns, sleep=sleep
        )
        choice = LessonChoice(self.curriculum, derive_seed(config.seed, "lessons", config.worker))
        self.workload = RolloutWorkload(
            config, self.source, intake, choice, self._status, self.counters,
            deliver=deliver, wall_time=wall_time, sleep=sleep,
        )  # fmt: skip
        context = HookContext(worker=self, state=TrainerState(seed=derive_seed(config.seed, "hooks", config.worker)))
        # One hook that fails does not stop the others, unless it says so itself.
        self.hook_manager = HookManager(step_clock=WORKER_STEPS, on_error="warn", time_ns=time_ns)
        self.loop = TrainingLoop(
            self.workload, self.hook_manager, context=context,
            watch_signals=watch_signals, second_signal=second_signal, time_ns=time_ns,
        )  # fmt: skip
        self.tracker: WorkerTracker = RowTracker(context) if tracker is None else tracker
        if config.curriculum is not None:
            asked = [{"use": "evaluation", "args": arguments} for arguments in default_evaluations(config.curriculum)]
            self.hook_manager.add_config(asked)

    # Hooks

    def register_hook(self, hook: object) -> None:
        """Add a hook, at any time; it takes effect at the next event."""
        self.hook_manager.register_hook(hook)

    def add_hook(self, hook: object, **options: object) -> str:
        """Add a hook with options, and return its name."""
        return self.hook_manager.add(hook, **options)

    def unregister_hook(self, hook: object) -> bool:
        """Remove a hook, at any time, and tell whether it was there."""
        return self.hook_manager.unregister_hook(hook)

    def clear_hooks(self) -> None:
        """Remove all hooks, those of the curriculum's evaluations among them."""
        self.hook_manager.clear_hooks()

    def get_hooks(self) -> list[object]:
        """Return the registered hooks in the order of registration: a copy."""
        return self.hook_manager.get_hooks()

    # The run

    def run(self, steps: int | None = None) -> WorkerResult:
        """Generate until the steps are done, a hook or a signal asks to stop, or the run is over.

        Args:
            steps: In all, earlier calls and attempts included; by default what the settings say.
        """
        if steps is not None and steps < 1:
            raise ConfigError(f"A worker needs steps of at least 1, got {steps}; leave it out to go on until told.")
        self.workload.steps = self.config.steps if steps is None else steps
        if self.config.weights == "receive" and self._weights is None:
            raise ConfigError(
                "This worker has nowhere to receive weights from: give RolloutWorker(config, weights=...), or "
                "set weights='initial' if it is to act with those its source begins with."
            )
        ended = self.loop.run()
        return WorkerResult(
            version=RESULT_VERSION,
            outcome=ended.outcome,
            run=replace(self.counters.run),
            attempt=replace(self.counters.attempt),
            weight_version=self.state.clocks.policy_version,
            loop=ended,
        )

    @property
    def state(self) -> TrainerState:
        """The serialisable state of this worker."""
        return self.loop.state

    def player(self) -> SourcePlayer:
        """Return who plays evaluations: the source, with the weights it has."""
        return SourcePlayer(self.source)

    def state_dict(self) -> dict[str, Plain]:
        """Return everything that makes the worker go on with the same bits, given the same weights."""
        return self.loop.state_dict()

    def load_state_dict(self, saved: Mapping[str, Plain], *, strict: bool = True) -> None:
        """Go on from a saved state; call it before ``run``."""
        self.loop.load_state_dict(saved, strict=strict)

    def close(self) -> None:
        """Release what the source holds."""
        self.source.close()


def _fitting_weights(config: WorkerConfig, weights: WeightReceiver | None) -> WeightReceiver | None:
    if config.weights == "initial" and weights is not None:
        raise ConfigError(
            "This worker has weights='initial', so it never receives any; leave weights=... out, or say 'receive'."
        )
    return weights
