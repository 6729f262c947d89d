"""Two proofs for hooks: that they resume exactly, and that they leave training alone."""

from __future__ import annotations

import copy
import json
import random
import sys
from dataclasses import dataclass
from typing import Any

from hookloop.core import HookContext, HookManager, TrainerState, TrainingLoop
from hookloop.testing.clock import ManualClock
from hookloop.testing.toy import ToyWorkload


@dataclass(frozen=True, slots=True)
class _Ending:
    """All that is left of a toy run: the training's bits, the hooks' memory, and what was logged."""

    workload: dict[str, Any]
    memory: dict[str, Any]
    rows: list[dict[str, Any]]
    clocks: dict[str, float]


class _Reporter:
    """Keeps the rows that a run logs."""

    stage = "report"

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Take the rows of this epoch."""
        self._rows += ctx.drain_metrics()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows; the wall clock is left out, which no two runs share."""
        return [{**row, "clocks": {k: v for k, v in row["clocks"].items() if k != "seconds"}} for row in self._rows]


def assert_resumable(hook: object, *, epochs: int = 12, **options: object) -> None:
    """Assert that ``epochs`` epochs equal k epochs, save, load, and the rest: for every k.

    The save passes through JSON. ``hook`` is copied for each run, so give one that has not been used.
    """
    whole = _train(hook, epochs, options)
    for k in range(1, epochs):
        resumed = _train(hook, epochs, options, interrupt_after=k)
        for what in ("workload", "clocks", "rows", "memory"):
            left, right = getattr(whole, what), getattr(resumed, what)
            assert left == right, (
                f"{type(hook).__name__} does not resume exactly: its {what} after {epochs} epochs differ from "
                f"{k} epochs + save + load + {epochs - k}.\n  whole:   {_shown(left, right)}\n"
                f"  resumed: {_shown(right, left)}\nName what it must keep in 'saved', or write state_dict and "
                "load_state_dict."
            )


def assert_pure(hook: object, *, epochs: int = 12, **options: object) -> None:
    """Assert that training gives the same bits, and leaves global random streams alike, with and without the hook."""
    before = _global_streams()
    without = _train(None, epochs, options)
    untouched = _global_streams()
    assert before == untouched, "the toy training itself drew from a global random stream"
    with_hook = _train(hook, epochs, options)
    name = type(hook).__name__
    assert without.workload == with_hook.workload, f"{name} changes training: the fit differs with and without it"
    assert without.clocks == with_hook.clocks, f"{name} changes training: the clocks differ with and without it"
    for library, stream in _global_streams().items():
        assert untouched[library] == stream, (
            f"{name} draws from the global random stream of {library}, which training may use too; draw from ctx.rng"
        )


def _train(
    hook: object | None, epochs: int, options: dict[str, object], *, interrupt_after: int | None = None
) -> _Ending:
    if interrupt_after is None:
        loop, reporter = _loop(hook, epochs, options)
        loop.run()
        return _ending(loop, reporter.rows())
    first, first_reporter = _loop(hook, interrupt_after, options)
    saves: list[str] = []
    first.hooks.add(_Saver(first, saves), name="_saver")
    first.run()
    second, second_reporter = _loop(hook, epochs, options)
    second.hooks.add(_Saver(second, []), name="_saver")
    second.load_state_dict(json.loads(saves[-1]))
    second.run()
    second.hooks.remove("_saver")
    return _ending(second, first_reporter.rows() + second_reporter.rows())


class _Saver:
    """Saves the loop at the end of each epoch, in the checkpoint's place in the order."""

    stage = "checkpoint"

    def __init__(self, loop: TrainingLoop, saves: list[str]) -> None:
        self._loop = loop
        self._saves = saves

    def on_epoch_end(self) -> None:
        """Save as strict JSON."""
        self._saves.append(json.dumps(self._loop.state_dict(), allow_nan=False))


def _loop(hook: object | None, epochs: int, options: dict[str, object]) -> tuple[TrainingLoop, _Reporter]:
    clock = ManualClock()
    hooks = HookManager(time_ns=clock)
    reporter = _Reporter()
    hooks.add(reporter, name="_reporter")
    if hook is not None:
        hooks.add(hook if hasattr(hook, "__code__") else copy.deepcopy(hook), **options)
    state = TrainerState(seed=7)
    return TrainingLoop(ToyWorkload(epochs), hooks, state=state, watch_signals=False, time_ns=clock), reporter


def _ending(loop: TrainingLoop, rows: list[dict[str, Any]]) -> _Ending:
    memory = loop.hooks.state_dict()["hooks"]
    kept = {name: saved for name, saved in memory.items() if not name.startswith("_")}
    return _Ending(json.loads(json.dumps(loop.workload.state_dict())), _normal(kept), rows, loop.clocks.reading())


def _normal(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _global_streams() -> dict[str, Any]:
    streams: dict[str, Any] = {"random": random.getstate()}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        streams["numpy"] = str(numpy.random.get_state())
    if torch is not None:
        streams["torch"] = torch.get_rng_state().tolist()
    return streams


def _shown(value: Any, other: Any) -> str:
    """Show where a value differs from another, not all of it."""
    if isinstance(value, dict) and isinstance(other, dict):
        return str({key: item for key, item in value.items() if other.get(key) != item})[:500]
    if isinstance(value, list) and isinstance(other, list):
        only = [item for item in value if item not in other]
        return f"{len(value)} entries; not in the other: {only}"[:500]
    return str(value)[:500]
