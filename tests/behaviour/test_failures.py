"""Failure policies, budgets and costs."""

from __future__ import annotations

import logging

import pytest

from hookloop.core import HookContext, TrainingLoop
from hookloop.errors import HookResultError
from hookloop.testing import Harness, ToyWorkload
from tests.fakes import Failing, Recorder


def test_by_default_a_failing_hook_ends_the_run_and_the_error_names_hook_and_event() -> None:
    with pytest.raises(OSError, match="disk full") as caught:
        TrainingLoop(ToyWorkload(3), [Failing()]).run()

    assert caught.value.__notes__ == ["in hook 'Failing' at epoch_end, epochs=1, on_error='raise'"]


def test_warn_keeps_going_and_counts_every_failure(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness(Failing(), on_error="warn")

    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            harness.epoch()

    failures = harness.state.failures["Failing"]
    assert (failures.count, failures.last_error, failures.is_disabled) == (5, "OSError: disk full", False)
    assert caplog.text.count("hook 'Failing' failed at epoch_end") == 5


def test_disable_switches_a_hook_off_after_three_failures_in_a_row() -> None:
    hook = Failing()
    harness = Harness(hook, on_error="disable")

    for _ in range(6):
        harness.epoch()

    assert hook.calls == 3
    assert harness.state.failures["Failing"].is_disabled


def test_a_success_in_between_starts_the_count_anew() -> None:
    class EveryThird(Failing):
        def on_epoch_end(self) -> None:
            self.calls += 1
            if self.calls % 3:
                raise OSError("flaky")

    hook = EveryThird()
    harness = Harness(hook, on_error="disable")

    for _ in range(9):
        harness.epoch()

    assert hook.calls == 9


def test_strict_mode_raises_whatever_the_policy_says() -> None:
    harness = Harness(Failing(), strict=True, on_error="disable")

    with pytest.raises(OSError, match="disk full"):
        harness.epoch()


def test_a_failing_observer_leaves_the_others_and_training_alone() -> None:
    recorder = Recorder()
    plain, observed = TrainingLoop(ToyWorkload(4)), TrainingLoop(ToyWorkload(4))
    observed.hooks.add(Failing(), on_error="warn")
    observed.hooks.add(recorder)

    plain.run()
    result = observed.run()

    assert len(recorder.calls) == 4
    assert result.failures["Failing"].count == 4
    assert observed.workload.state_dict() == plain.workload.state_dict()


def test_other_hooks_are_told_of_a_failure() -> None:
    seen: list[tuple[str, str]] = []

    class Watcher:
        def on_hook_error(self, ctx: HookContext) -> None:
            seen.append((str(ctx.exception), ctx.event))

    harness = Harness(Watcher())
    harness.hooks.add(Failing(), on_error="warn")

    harness.epoch()

    assert seen == [("disk full", "hook_error")]
    assert harness.context.exception is None


def test_an_interrupt_is_never_taken_for_a_failure() -> None:
    class Interrupted:
        def on_epoch_end(self) -> None:
            raise KeyboardInterrupt

    harness = Harness(Interrupted(), on_error="warn")

    with pytest.raises(KeyboardInterrupt):
        harness.epoch()

    assert harness.state.failures == {}


def test_stop_iteration_cannot_end_a_loop_by_accident() -> None:
    harness = Harness(Failing(error=StopIteration()))

    with pytest.raises(RuntimeError, match="'Failing' raised StopIteration at epoch_end"):
        harness.epoch()


def test_a_result_that_is_no_mapping_is_refused_at_the_first_call() -> None:
    class Wrong:
        def on_epoch_end(self) -> float:
            return 0.5

    harness = Harness(Wrong())

    with pytest.raises(
        HookResultError, match=r"'Wrong' returned 0.5 \(a float\) at epoch_end; return a mapping of metrics"
    ):
        harness.epoch()


def test_the_context_is_as_before_after_a_hook_failed() -> None:
    harness = Harness(Failing())

    with pytest.raises(OSError, match="disk full"):
        harness.epoch()

    assert (harness.context.event, harness.context.hook) == ("", "")


class Slow:
    """Takes a set time of the manual clock on each call."""

    def __init__(self, harness: Harness, seconds: float) -> None:
        self._harness = harness
        self._seconds = seconds

    def on_epoch_end(self) -> None:
        self._harness.clock.advance(self._seconds)


def test_cost_is_recorded_per_hook_and_event() -> None:
    harness = Harness()
    harness.hooks.add(Slow(harness, 0.25), name="slow")
    harness.hooks.add(Recorder(), name="quick")

    harness.epoch()
    harness.epoch()

    costs = {cost.hook: cost for cost in harness.hooks.costs()}
    assert (costs["slow"].calls, costs["slow"].total_ns, costs["slow"].max_ns) == (2, 500_000_000, 250_000_000)
    assert (costs["quick"].calls, costs["quick"].total_ns) == (2, 0)


def test_a_hook_that_was_not_due_costs_no_call() -> None:
    harness = Harness(Recorder(), schedule="every 3 epochs")

    for _ in range(7):
        harness.epoch()

    assert [cost.calls for cost in harness.hooks.costs()] == [2]


@pytest.mark.parametrize(("budget", "words"), [("2%", "takes 20.0% of the run's time"), ("50ms", "250.00 ms per call")])
def test_a_hook_over_its_budget_is_warned_of_once(budget: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    harness.hooks.add(Slow(harness, 0.25), name="slow", budget=budget)
    harness.start()

    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            harness.clock.advance(1.0)
            harness.epoch()
            excess = harness.hooks.check_budgets()

    assert words in excess["slow"]
    assert len(caplog.records) == 1
    assert words in caplog.text


def test_a_hook_within_its_budget_is_left_in_peace(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    harness.hooks.add(Slow(harness, 0.25), name="slow", budget="50%")
    harness.start()

    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            harness.clock.advance(1.0)
            harness.epoch()

    assert harness.hooks.check_budgets() == {}
    assert caplog.records == []


def test_a_hook_that_is_switched_on_again_starts_with_a_clean_record() -> None:
    hook = Failing()
    harness = Harness(hook, on_error="disable")
    for _ in range(3):
        harness.epoch()

    harness.hooks.enable("Failing")
    for _ in range(5):
        harness.epoch()

    assert hook.calls == 6


def test_a_listener_is_told_which_hook_failed() -> None:
    seen: list[str] = []
    harness = Harness()
    harness.hooks.add(lambda failed_hook: seen.append(failed_hook), name="watch", on="hook_error")
    harness.hooks.add(Failing(), on_error="warn", name="broken")

    harness.epoch()

    assert seen == ["broken"]
    assert harness.context.failed_hook is None
