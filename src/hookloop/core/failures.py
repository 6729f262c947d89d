"""What happens when a hook fails: raise, warn, or disable after a few in a row; counted in every case."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hookloop.core.context import HookContext
from hookloop.core.slots import Slot
from hookloop.core.state import HookFailures

log = logging.getLogger("hookloop.hooks")

STRIKES = 3  # failures in a row after which an observer is switched off


def count_failure(name: str, event: str, error: Exception, ctx: HookContext) -> HookFailures:
    """Write a failure into the state, which is saved and shown at the end of the run."""
    failures = ctx.state.failures.setdefault(name, HookFailures())
    failures.count += 1
    failures.last_error = f"{type(error).__name__}: {error}"
    failures.last_event = event
    return failures


def record_failure(slot: Slot, error: Exception, ctx: HookContext, policy: str, disable: Callable[[], None]) -> bool:
    """Count a failure, apply the policy, and tell whether the error must be raised."""
    failures = count_failure(slot.name, slot.event, error, ctx)
    error.add_note(f"in hook {slot.name!r} at {slot.event}, epochs={ctx.state.clocks.epochs}, on_error={policy!r}")
    if policy == "raise":
        if isinstance(error, StopIteration):
            # Left alone it would end whichever `for` loop happens to be running, without a word.
            raise RuntimeError(f"Hook {slot.name!r} raised StopIteration at {slot.event}.") from error
        return True
    is_in_a_row = slot.failed_at == slot.calls - 1
    slot.strikes = slot.strikes + 1 if is_in_a_row else 1
    slot.failed_at = slot.calls
    log.error("hook %r failed at %s (%d so far): %s", slot.name, slot.event, failures.count, error, exc_info=error)
    if policy == "disable" and slot.strikes >= STRIKES:
        failures.is_disabled = True
        disable()
        log.error("hook %r is switched off after %d failures in a row", slot.name, slot.strikes)
    return False
