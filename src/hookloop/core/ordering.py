"""The order in which hooks run: relations first, then stage, priority and registration.

The result depends on nothing but the declarations and the order of registration, so every rank, every
process and every hash seed arrives at the same one.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hookloop.core.options import STAGES, HookOptions
from hookloop.errors import OrderError, UnknownNameError, did_you_mean


@dataclass(frozen=True, slots=True)
class Ranked:
    """What ordering needs to know of one hook."""

    name: str
    options: HookOptions
    answers_to: tuple[str, ...]
    """The names under which ``after`` and ``before`` may mean it: its own, its group's, its class's."""
    needs: frozenset[str] = frozenset()
    """The values it reads, declared or taken as parameters."""


def ordered(hooks: Sequence[Ranked], given: Collection[str] = ()) -> list[str]:
    """Return the names in running order; ``given`` are values that need no hook to provide them."""
    by_name = {hook.name: hook for hook in hooks}
    waits_for = {hook.name: _predecessors(hook, hooks, given) for hook in hooks}
    for name, earlier in waits_for.items():
        for other in earlier:
            _require_stages(by_name[other], by_name[name])
    followers: dict[str, list[str]] = {name: [] for name in by_name}
    for name, earlier in waits_for.items():
        for other in earlier:
            followers[other].append(name)
    missing = {name: len(earlier) for name, earlier in waits_for.items()}
    keys = {hook.name: (_stage(hook), -hook.options.priority, index) for index, hook in enumerate(hooks)}

    ready = [(keys[name], name) for name, count in missing.items() if count == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for follower in followers[name]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heapq.heappush(ready, (keys[follower], follower))
    if len(order) < len(hooks):
        raise OrderError(_describe_cycle(waits_for, done=order))
    return order


def _predecessors(hook: Ranked, hooks: Sequence[Ranked], given: Collection[str]) -> list[str]:
    """Return, in registration order and without repeats, the hooks that must run before ``hook``."""
    earlier: dict[str, None] = {}
    for name in hook.options.after:
        earlier.update(dict.fromkeys(_meant_by(name, hook, "after", hooks)))
    for other in hooks:
        for name in other.options.before:
            if hook.name in _meant_by(name, other, "before", hooks):
                earlier[other.name] = None
    for need in sorted({*hook.options.needs, *hook.needs}):
        providers = [other.name for other in hooks if need in other.options.provides and other.name != hook.name]
        if not providers and need not in given and need not in hook.options.provides:
            offered = {name for other in hooks for name in other.options.provides} | set(given)
            raise OrderError(
                f"{hook.name!r} needs {need!r}, which no hook provides and the workload does not offer."
                f"{did_you_mean(need, offered)}"
            )
        earlier.update(dict.fromkeys(providers))
    return list(earlier)


def _meant_by(name: str, asker: Ranked, option: str, hooks: Sequence[Ranked]) -> list[str]:
    found = [other.name for other in hooks if name in other.answers_to and other.name != asker.name]
    if not found and name in asker.answers_to:
        raise OrderError(f"{asker.name!r} asks to run {option} itself; name another hook.")
    if not found:
        known = [answer for other in hooks for answer in other.answers_to if other.name != asker.name]
        raise UnknownNameError("hook", name, known, where=f"for {asker.name!r} to run {option}")
    return found


def _stage(hook: Ranked) -> int:
    return STAGES.index(hook.options.stage)


def _require_stages(earlier: Ranked, later: Ranked) -> None:
    if _stage(earlier) > _stage(later):
        raise OrderError(
            f"{later.name!r} (stage {later.options.stage!r}) must run after {earlier.name!r} (stage "
            f"{earlier.options.stage!r}), but stages run in the order {' → '.join(STAGES)}; move one of the two."
        )


def _describe_cycle(waits_for: dict[str, list[str]], done: list[str]) -> str:
    left = {name: [other for other in earlier if other not in done] for name, earlier in waits_for.items()}
    name = next(name for name, earlier in left.items() if earlier)
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = left[name][0]
    circle = [*path[path.index(name) :], name]
    return (
        f"These hooks wait for each other: {' → '.join(map(repr, reversed(circle)))}; "
        "drop one of their 'needs', 'after' or 'before'."
    )
