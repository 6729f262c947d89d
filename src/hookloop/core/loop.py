"""The loop: it owns the clocks, fires the events, stops at safe points, and always ends properly."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from hookloop.core.agreement import agree
from hookloop.core.context import HookContext
from hookloop.core.costs import HookCost
from hookloop.core.global_random import load_global_random, save_global_random
from hookloop.core.manager import HookManager
from hookloop.core.signals import SECOND, SignalWatch
from hookloop.core.state import HookFailures, StopRequest, TrainerState
from hookloop.errors import HookStateError, WorkloadError

Plain = Any
Outcome = Literal["completed", "stopped", "interrupted", "failed"]

LOOP_VERSION = 2
BY_SIGNAL = "signal"
_EXIT_CODES: Mapping[str, int] = {"completed": 0, "stopped": 0, "failed": 4}


class Workload(Protocol):
    """What a loop drives: something that trains, one epoch at a time.

    It may also say, for its checkpoints: ``parts`` (branches of its state that get a file of their own, such as
    ``{"model": ("learner", "policy")}``), ``progress_clock`` (what its checkpoints are counted in; epochs by
    default), ``exactness`` and ``inexact_because`` (what a resume promises; bit-exact by default). ``planned`` says how
    far clocks will read at the end of the run, about, by their names.

    One that can go on from a state with other random numbers than before also has ``perturb(seed: int)``, which
    seeds its random streams anew; see ``TrainingLoop.roll_back``.
    """

    def is_finished(self, loop: TrainingLoop) -> bool:
        """Tell whether there is nothing left to train."""
        ...

    def run_epoch(self, loop: TrainingLoop) -> bool | None:
        """Train one epoch, telling the loop of each thing done; False if it left early at a safe point."""
        ...

    def state_dict(self) -> dict[str, Plain]:
        """Return all that is needed to go on with the same bits; tensors may be live ones."""
        ...

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        ...


@dataclass(frozen=True, slots=True)
class LoopResult:
    """How a run ended."""

    outcome: Outcome
    stop: StopRequest | None
    clocks: dict[str, float]
    failures: dict[str, HookFailures]
    costs: tuple[HookCost, ...]
    signal: int | None = None

    @property
    def exit_code(self) -> int:
        """What a command should exit with: 0, 4 when failed, 128 + the signal when interrupted."""
        if self.outcome == "interrupted":
            return 130 if self.signal is None else 128 + self.signal
        return _EXIT_CODES[self.outcome]


class TrainingLoop:
    """Drives a workload epoch by epoch and tells the hooks.

    The workload calls the loop's verbs (``rollout``, ``step``, ``minibatch_start`` ...) as it works; the loop
    counts and fires. Nobody else writes the clocks.

    Args:
        workload: What to train.
        hooks: A HookManager, or a list of hooks in any dialect.
        state: The state of a run to go on with; a new one by default.
        watch_signals: Take SIGINT and SIGTERM while running.
        second_signal: ``raise`` or ``exit``: what a second signal does.
        time_ns: The stopwatch behind the clock ``seconds``.
    """

    def __init__(
        self,
        workload: Workload,
        hooks: HookManager | list[object] | None = None,
        *,
        state: TrainerState | None = None,
        context: HookContext | None = None,
        watch_signals: bool = True,
        second_signal: SECOND = "raise",
        time_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.workload = workload
        self.hooks = hooks if isinstance(hooks, HookManager) else HookManager(time_ns=time_ns)
        if not isinstance(hooks, HookManager):
            for hook in hooks or ():
                self.hooks.add(hook)
        self.context = context if context is not None else HookContext(state=state)
        self.state = self.context.state
        self.clocks = self.state.clocks
        self.emit = self.hooks.emit
        self._watches_signals = watch_signals
        self._signals = SignalWatch(second_signal)
        self._time_ns = time_ns
        self._is_running = False
        self._may_step = True
        self.context.loop = self
        self.hooks.bind(self.context)

    # The run

    def run(self) -> LoopResult:
        """Train until the workload is finished, a hook asks to stop, a signal comes, or something fails."""
        if self._is_running:
            raise WorkloadError("This loop is running already; make a second one for a second run.")
        self._is_running = True
        self._signals.received = None
        self._forget_interrupt()
        if self._watches_signals:
            with self._signals:
                return self._run()
        return self._run()

    def should_leave(self) -> bool:
        """Tell, at a safe point, whether to stop here; every rank is told the same.

        The loop asks between epochs. A workload with long epochs asks at safe points of its own and then
        returns False from ``run_epoch``.
        """
        if self.state.stop is None:
            if self._signals.received is not None:
                self._request_stop_by_signal()
            elif self.hooks.ranks.world_size == 1:
                return False  # asked after every batch, this is what it costs
        self._agree()
        return self.state.stop is not None

    def state_dict(self) -> dict[str, Plain]:
        """Return everything that makes the run go on with the same bits: state, hooks, workload and random streams.

        Tensors of the workload are the live ones, as torch has it: whoever keeps them copies them.
        """
        hooks = self.hooks.state_dict()  # first: it joins background hooks, which may still write the state
        return {
            "version": LOOP_VERSION,
            "state": self.state.state_dict(),
            "hooks": hooks,
            "workload": self.workload.state_dict(),
            "metrics": _numbers(self.context.metrics),
            "random": save_global_random(),
        }

    def load_state_dict(self, saved: Mapping[str, Plain], *, strict: bool = True) -> None:
        """Go on from a saved state; call it before ``run``."""
        if saved.get("version") != LOOP_VERSION:
            raise HookStateError(
                f"The saved loop has version {saved.get('version')!r}; this hookloop reads version {LOOP_VERSION}."
            )
        self.state.load_state_dict(saved["state"])
        self.state.outcome = None
        self._forget_interrupt()
        self.state.attempt += 1
        self.workload.load_state_dict(saved["workload"])
        self.hooks.load_state_dict(saved["hooks"], strict=strict)
        self.context.metrics = dict(saved.get("metrics", {}))
        load_global_random(saved["random"])  # last: nothing above may draw from what was restored

    def roll_back(self, saved: Mapping[str, Plain], seed: int) -> None:
        """Go back to a saved state in the middle of a run, and on from there with the random numbers of ``seed``.

        With the same ones an exact run would only do the same again. What is not undone: the time spent, the
        attempt, a request to stop. A hook may call this at ``epoch_end``; those after it see the state gone back to.
        """
        self.hooks.join(self.context)  # what background hooks found belongs to the epochs that are undone
        attempt, stop, seconds = self.state.attempt, self.state.stop, self.clocks.refresh_seconds()
        self.load_state_dict(saved, strict=False)
        self.state.attempt = attempt
        self.state.stop = stop if stop is not None else self.state.stop
        self.clocks.seconds = seconds
        self.clocks.start(self._time_ns)
        perturb = getattr(self.workload, "perturb", None)
        if callable(perturb):
            perturb(seed)

    # What the workload tells

    @contextmanager
    def rollout(self) -> Generator[None]:
        """Surround collection."""
        self.state.stop_rollout = False
        self.emit.rollout_start(self.context)
        yield
        self.emit.rollout_end(self.context)

    def step(self, env_steps: int = 1, episodes: int = 0) -> None:
        """Count one vector step, and the episodes that ended with it."""
        self.clocks.env_steps += env_steps
        self.clocks.episodes += episodes
        self.emit.step_end(self.context)
        if episodes:
            self.emit.episode_end(self.context)

    @contextmanager
    def train_phase(self) -> Generator[None]:
        """Surround all optimisation of an epoch."""
        self.state.stop_update_epoch = False
        self.state.update_epoch = 0
        self.state.mb_idx = 0
        self.emit.train_phase_start(self.context)
        yield
        self.emit.train_phase_end(self.context)

    def update_epoch_done(self) -> None:
        """Count one pass over the experience or the data."""
        self.clocks.update_epochs += 1
        self.state.update_epoch += 1
        self.state.mb_idx = 0

    def minibatch_start(self, batch: object = None) -> None:
        """Tell that a batch is ready."""
        self.context.batch = batch
        self.context.batch_idx = self.state.mb_idx
        self.emit.minibatch_start(self.context)

    def gradients(self, loss: object = None) -> bool:
        """Tell that gradients are whole, after backward and unscale, before clipping; and whose they are.

        Returns:
            Whether to step along them. If not, a hook has asked to leave this step out: zero them and go on.
        """
        self.context.loss = loss
        self.emit.gradients(self.context)
        self._may_step = not self.state.skip_optimizer_step
        self.state.skip_optimizer_step = False
        return self._may_step

    def optimizer_step(self) -> None:
        """Count an optimizer step, after it and before gradients are zeroed."""
        if not self._may_step:
            raise WorkloadError(
                "The workload took an optimizer step that a hook had asked to leave out; step only where "
                "loop.gradients() returns True."
            )
        self.clocks.optimizer_steps += 1
        self.emit.optimizer_step(self.context)

    def minibatch_end(self, loss: object = None) -> None:
        """Count a minibatch, stepped or not."""
        self.clocks.minibatches += 1
        self.context.loss = loss
        self.context.batch_idx = self.state.mb_idx
        self.emit.minibatch_end(self.context)
        self.state.mb_idx += 1

    @contextmanager
    def evaluation(self, evaluation: object = None) -> Generator[dict[str, Plain]]:
        """Surround one evaluation or validation; put its metrics into the mapping it yields."""
        self.context.evaluation = evaluation
        outer, self.context.metrics = self.context.metrics, {}
        self.emit.evaluation_start(self.context)
        try:
            yield self.context.metrics
            self.emit.evaluation_end(self.context)
        finally:
            self.context.metrics = outer

    def policy_updated(self, version: int) -> None:
        """Tell that new weights are in use."""
        self.clocks.policy_version = version
        self.emit.policy_updated(self.context)

    def lesson_changed(self, lesson_id: str | None) -> None:
        """Tell that another lesson is trained."""
        self.context.lesson_id = lesson_id
        self.emit.lesson_changed(self.context)

    def checkpoint_saved(self, checkpoint: object) -> None:
        """Tell that a checkpoint is durable."""
        self.context.checkpoint = checkpoint
        self.emit.checkpoint_saved(self.context)

    def happened(self, event: str, **counts: int) -> None:
        """Count on clocks of the workload's own and fire an event of its own."""
        for clock, amount in counts.items():
            setattr(self.clocks, clock, getattr(self.clocks, clock) + amount)
        self.hooks.fire(event, self.context)

    # Inside

    def _run(self) -> LoopResult:
        self.clocks.start(self._time_ns)
        self.context.outcome, self.context.exception = None, None
        error: BaseException | None = None
        try:
            self.hooks.start(self.context)
            self.context.outcome = self._train()
        except BaseException as raised:
            error = raised
            self.context.exception = raised
            self.context.outcome = "interrupted" if isinstance(raised, KeyboardInterrupt) else "failed"
            raise
        finally:
            self._finish(error)
        return self._result()

    def _train(self) -> Outcome:
        while not self.workload.is_finished(self):
            if self.should_leave():
                return self._leave()
            self.context.values.clear()  # what hooks provided belongs to the epoch that is over
            self.emit.epoch_start(self.context)
            has_left_early = self.workload.run_epoch(self) is False
            if has_left_early:
                if not self.should_leave():
                    raise WorkloadError(
                        "run_epoch returned False, but nobody asked to stop; return False only after should_leave()."
                    )
                return self._leave()
            self.clocks.epochs += 1
            self.clocks.refresh_seconds()
            self._agree()
            self.emit.epoch_end(self.context)
            self._tidy_up()
        return "completed"

    def _leave(self) -> Outcome:
        self.emit.stop_requested(self.context)
        assert self.state.stop is not None
        return "interrupted" if self.state.stop.by == BY_SIGNAL else "stopped"

    def _agree(self) -> None:
        if self.hooks.ranks.world_size > 1:
            agree(self.hooks, self.state)

    def _tidy_up(self) -> None:
        self.hooks.check_budgets()
        if not self.hooks.has_reporter:
            self.state.pending_metrics.clear()

    def _finish(self, error: BaseException | None) -> None:
        """End the run exactly once, and close in every case, whatever goes wrong on the way."""
        self.clocks.refresh_seconds()
        self.state.outcome = self.context.outcome
        try:
            self.hooks.end(self.context, error)
        except BaseException as late:
            self.state.outcome = self.context.outcome = "failed"
            error = late
            raise
        finally:
            try:
                self.hooks.close(self.context, error)
            finally:
                self.clocks.stop()
                self._is_running = False

    def _forget_interrupt(self) -> None:
        """Drop the request of a signal: it ended an attempt, not the run."""
        if self.state.stop is not None and self.state.stop.by == BY_SIGNAL:
            self.state.stop = None

    def _request_stop_by_signal(self) -> None:
        reason = f"received {self._signals.name}"
        self.state.stop = StopRequest(BY_SIGNAL, reason, self.clocks.epochs, self.clocks.env_steps)

    def _result(self) -> LoopResult:
        outcome: Any = self.context.outcome
        return LoopResult(
            outcome=outcome,
            stop=self.state.stop,
            clocks=self.clocks.reading(),
            failures=dict(self.state.failures),
            costs=tuple(self.hooks.costs()),
            signal=self._signals.received,
        )


def _numbers(metrics: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return the metrics that strict JSON can hold."""
    return {name: value for name, value in metrics.items() if isinstance(value, int | float) and math.isfinite(value)}
