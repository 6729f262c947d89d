from __future__ import annotations

import pytest

from hookloop.core import HookContext, HookManager, PeriodicHook
from hookloop.errors import ScheduleError


class Seen(PeriodicHook):
    def __init__(self, frequency: int) -> None:
        super().__init__(frequency)
        self.steps: list[int] = []

    def run(self, context: HookContext) -> None:
        self.steps.append(context.step)


def fire(hooks: HookManager, **clocks: int) -> None:
    context = hooks.context
    for name, value in clocks.items():
        vars(context.state.clocks)[name] = value
    hooks.emit.step_end(context)


def test_steps_can_be_counted_on_a_clock_of_the_workloads_own() -> None:
    hooks, seen = HookManager(step_clock="worker_steps"), Seen(2)
    hooks.register_hook(seen)

    for step in range(1, 6):
        fire(hooks, worker_steps=step, env_steps=step * 100)

    assert seen.steps == [2, 4]
    assert hooks.context.readings["worker_steps"] == 5


def test_a_schedule_may_name_that_clock_and_no_other() -> None:
    hooks, due = HookManager(step_clock="worker_steps"), []
    hooks.add(lambda ctx: due.append(ctx.readings["worker_steps"]), name="due", schedule="every 3 worker_steps")
    with pytest.raises(ScheduleError, match="Did you mean 'worker_steps'"):
        hooks.add(lambda: None, name="typo", schedule="every 3 worker_step")

    for step in range(1, 7):
        fire(hooks, worker_steps=step)

    assert due == [3, 6]


def test_another_set_of_hooks_is_not_touched() -> None:
    HookManager(step_clock="worker_steps")

    assert HookManager().events.find("step_end").clock == "env_steps"
