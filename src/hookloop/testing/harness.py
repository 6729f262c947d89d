"""Events without a trainer, and a record of those that were fired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookloop.core import BUILT_IN_EVENTS, HookContext, HookManager, TrainerState
from hookloop.testing.clock import ManualClock


@dataclass(frozen=True, slots=True)
class Fired:
    """One event that was fired, and the clocks at that moment."""

    event: str
    clocks: dict[str, float]


class TraceHook:
    """Records every built-in event of a run, in order."""

    on_error = "raise"

    def __init__(self) -> None:
        self._fired: list[Fired] = []

    @property
    def fired(self) -> list[Fired]:
        """What was fired so far."""
        return list(self._fired)

    @property
    def events(self) -> list[str]:
        """The names of what was fired so far."""
        return [fired.event for fired in self._fired]

    def record(self, ctx: HookContext) -> None:
        """Take note of the running event."""
        self._fired.append(Fired(ctx.event, dict(ctx.readings)))


for _event in BUILT_IN_EVENTS:
    setattr(TraceHook, f"on_{_event.name}", lambda self, ctx: self.record(ctx))


class Harness:
    """Fires events at hooks as a loop would, one at a time, under a manual clock.

    >>> harness = Harness(MyHook())
    >>> harness.epoch(loss=0.5)          # epoch_start, epoch_end
    >>> harness.metrics
    {'MyHook/best': 0.5}
    """

    def __init__(self, *hooks: object, strict: bool = False, seed: int = 0, **options: object) -> None:
        self.clock = ManualClock()
        self.hooks = HookManager(strict=strict, time_ns=self.clock)
        self.context = HookContext(state=TrainerState(seed=seed))
        self.hooks.bind(self.context)
        for hook in hooks:
            self.hooks.add(hook, **options)
        self.context.state.clocks.start(self.clock)

    @property
    def state(self) -> TrainerState:
        """The state the hooks see."""
        return self.context.state

    @property
    def metrics(self) -> dict[str, Any]:
        """The latest value of each metric the hooks have logged."""
        return {name: value for row in self.state.pending_metrics for name, value in row["values"].items()}

    def start(self) -> None:
        """Fire ``training_start``."""
        self.hooks.start(self.context)

    def end(self, outcome: str = "completed", error: BaseException | None = None) -> None:
        """Fire ``exception`` if there is an error, then ``training_end`` and ``close``."""
        self.context.outcome, self.context.exception = outcome, error
        self.hooks.end(self.context, error)
        self.hooks.close(self.context, error)

    def fire(self, event: str, **fields: Any) -> None:
        """Fire one event with some of the context set; clocks are left alone."""
        for name, value in fields.items():
            setattr(self.context, name, value)
        self.hooks.fire(event, self.context)

    def advance(self, **clocks: float) -> None:
        """Move clocks by the given amounts; ``seconds`` moves the stopwatch."""
        self.clock.advance(clocks.pop("seconds", 0))
        for name, amount in clocks.items():
            setattr(self.state.clocks, name, getattr(self.state.clocks, name) + amount)

    def step(self, env_steps: int = 1, **fields: Any) -> None:
        """Count environment steps and fire ``step_end``."""
        self.advance(env_steps=env_steps)
        self.fire("step_end", **fields)

    def minibatch(self, **fields: Any) -> None:
        """Fire the four events of a minibatch; no ``optimizer_step`` if a hook asks to skip it."""
        self.fire("minibatch_start", **fields)
        self.fire("gradients")
        if not self.state.skip_optimizer_step:
            self.advance(optimizer_steps=1)
            self.fire("optimizer_step")
        self.state.skip_optimizer_step = False
        self.advance(minibatches=1)
        self.fire("minibatch_end")

    def epoch(self, **fields: Any) -> None:
        """Fire ``epoch_start``, count an epoch, and fire ``epoch_end``."""
        self.fire("epoch_start", **fields)
        self.advance(epochs=1)
        self.fire("epoch_end")
