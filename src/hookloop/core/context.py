"""The live view of a run that hooks are given."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookloop.core.clocks import ENV_STEPS
from hookloop.core.plain import detached_copy
from hookloop.core.rng import derive_seed, stream
from hookloop.core.state import StopRequest, TrainerState
from hookloop.errors import HookStateError

if TYPE_CHECKING:
    from hookloop.core.loop import TrainingLoop
    from hookloop.core.manager import HookManager

Live = Any  # the user's own objects: models, optimizers, trainers, batches; the core never looks inside

LIVE_HANDLES = ("trainer", "worker", "model", "optimizer", "losses", "experience", "batch", "loss")


class HookContext:
    """What a hook may see and ask for; one object per run, updated in place before each event.

    ``state`` is the part that is saved. Everything else is rebuilt in each process: the running event and
    hook, handles to the workload's objects, and the requests a hook can make. ``loop`` is the running loop,
    None without one and in the background: ``ctx.loop.state_dict()`` is the whole run.
    """

    __slots__ = (
        "_drawing",
        "_manager",
        "_rng",
        "_step",
        "batch",
        "batch_idx",
        "checkpoint",
        "evaluation",
        "event",
        "exception",
        "experience",
        "failed_hook",
        "hook",
        "lesson_id",
        "loop",
        "loss",
        "losses",
        "metadata",
        "metrics",
        "model",
        "optimizer",
        "outcome",
        "previous_step",
        "readings",
        "services",
        "state",
        "step_clock",
        "trainer",
        "values",
        "worker",
    )

    def __init__(
        self,
        worker: Live = None,
        step: int | None = None,
        rng: Live = None,
        lesson_id: str | None = None,
        metadata: dict[str, Live] | None = None,
        *,
        state: TrainerState | None = None,
        trainer: Live = None,
        model: Live = None,
        optimizer: Live = None,
    ) -> None:
        self.state = state if state is not None else TrainerState()
        self.readings = vars(self.state.clocks)
        self.event = ""
        self.hook = ""
        self.step_clock = ENV_STEPS
        self._step = step
        self.previous_step: int | None = None
        self._rng: Live = rng
        self._drawing: tuple[tuple[object, ...], random.Random] | None = None
        self._manager: HookManager | None = None
        self.loop: TrainingLoop | None = None
        self.lesson_id = lesson_id
        self.metadata: dict[str, Live] = {} if metadata is None else metadata
        self.worker = worker
        self.trainer = trainer
        self.model = model
        self.optimizer = optimizer
        self.losses: Live = None
        self.experience: Live = None
        self.batch: Live = None
        self.batch_idx = 0
        self.loss: Live = None
        self.metrics: dict[str, Live] = {}
        self.evaluation: Live = None
        self.checkpoint: Live = None
        self.outcome: str | None = None
        self.exception: BaseException | None = None
        self.failed_hook: str | None = None
        self.values: dict[str, Live] = {}
        self.services: dict[str, Live] = {}

    @property
    def step(self) -> int:
        """The completed count on the running event's own clock: epochs at ``epoch_end``, and so on."""
        return int(self.readings[self.step_clock]) if self._step is None else self._step

    @step.setter
    def step(self, step: int | None) -> None:
        self._step = step

    @property
    def rng(self) -> random.Random:
        """A random stream of the running hook's own, derived from run seed, hook, event and clocks.

        It is fresh at every event and nobody else draws from it: adding or removing a hook never
        changes another's randomness, and a resumed run draws the same numbers.
        """
        if self._rng is not None:
            return self._rng
        names = self._stream_names()
        if self._drawing is None or self._drawing[0] != names:
            self._drawing = names, stream(self.state.seed, *names)
        return self._drawing[1]

    @property
    def rng_seed(self) -> int:
        """The seed of ``rng``, for generators of numpy or torch."""
        return derive_seed(self.state.seed, *self._stream_names())

    def request_stop(self, reason: str) -> None:
        """Ask the loop to end the run at its next safe point; the first request is the one recorded."""
        if self.state.stop is None:
            clocks = self.state.clocks
            self.state.stop = StopRequest(self.hook or "workload", reason, clocks.epochs, clocks.env_steps)

    def request(self, what: str) -> None:
        """Make the hooks that serve ``what`` due once, at their next event, whatever their schedule says."""
        self.state.requests.setdefault(what, self.hook or "workload")
        if self._manager is not None and self._manager.ranks.world_size == 1:
            self._manager.serve_request(what)  # among several ranks, once all know of it

    def request_checkpoint(self) -> None:
        """Ask for a checkpoint at the end of this epoch."""
        self.request("checkpoint")

    def request_evaluation(self) -> None:
        """Ask for an evaluation at the end of this epoch."""
        self.request("evaluation")

    def note_failure(self, error: Exception) -> None:
        """Count an error that the running hook has dealt with: shown, saved, and told to ``hook_error``."""
        if self._manager is not None:
            self._manager.note_failure(error)

    def request_skip(self) -> None:
        """Ask that the coming optimizer step is not taken; ``gradients`` is the last event to ask at.

        Among several ranks a hook of ``ranks="all"`` may ask: all see the same gradients, and decide alike.
        """
        if self._manager is not None:
            self._manager.require_everywhere(self.hook)
        self.state.skip_optimizer_step = True

    def log(self, metrics: Mapping[str, Live]) -> None:
        """Record metrics under the given names, with the clocks of this moment."""
        if metrics:
            self.state.pending_metrics.append(
                {
                    "hook": self.hook,
                    "event": self.event,
                    "clocks": dict(self.readings),
                    "values": dict(metrics),
                }
            )

    def drain_metrics(self) -> list[dict[str, Live]]:
        """Hand over the rows logged since the last call; whoever reports them takes them."""
        rows, self.state.pending_metrics = self.state.pending_metrics, []
        return rows

    def attach(self, manager: HookManager) -> None:
        """Let requests reach the hooks of ``manager``."""
        self._manager = manager

    def snapshot(self, keep: tuple[str, ...] = ()) -> HookContext:
        """Return a copy that later training cannot change, for a hook that runs in the background.

        Live handles are left behind, except those named in ``keep``, which are copied and detached.
        """
        taken = HookContext(
            step=self._step,
            lesson_id=self.lesson_id,
            metadata=copy.copy(self.metadata),
            state=copy.deepcopy(self.state),
        )
        for name in (
            "event",
            "hook",
            "step_clock",
            "previous_step",
            "batch_idx",
            "outcome",
            "evaluation",
            "checkpoint",
        ):
            setattr(taken, name, getattr(self, name))
        # What the hook asks for or logs is counted from here on, and taken over when it is done.
        taken.state.pending_metrics, taken.state.requests, taken.state.stop = [], {}, None
        taken.state.pending_progress_updates = {}
        taken.metrics = dict(self.metrics)
        taken.services = self.services
        for name in keep:
            if name in LIVE_HANDLES:
                setattr(taken, name, detached_copy(getattr(self, name)))
            elif name in self.values:
                taken.values[name] = detached_copy(self.values[name])
        return taken

    def value(self, name: str) -> Live:
        """Return a value that the workload or a hook provides, or say that it was not computed."""
        if name in self.values:
            return self.values[name]
        if name in self.state.extras:
            return self.state.extras[name]
        raise HookStateError(
            f"{self.hook!r} reads {name!r} at {self.event!r}, but it was not provided there; "
            "declare it in 'needs' and read it at the event at which its provider sets it."
        )

    def _stream_names(self) -> tuple[object, ...]:
        counted = sorted((name, value) for name, value in self.readings.items() if name != "seconds")
        return ("hook", self.hook, self.event, *counted)
