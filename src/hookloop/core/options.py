"""What a hook may declare about itself, on its class, its instance, or where it is added."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from hookloop.core.clocks import BUILT_IN_CLOCKS
from hookloop.core.events import EventTable
from hookloop.core.schedule_text import as_schedule
from hookloop.core.schedules import Schedule
from hookloop.errors import RegistrationError, ScheduleError, UnknownNameError, did_you_mean

log = logging.getLogger("hookloop.hooks")

ON_ERROR = ("raise", "warn", "disable")
RANKS = ("main", "all")
STAGES = ("evaluate", "observe", "report", "checkpoint", "publish")
_NAME = re.compile(r"[\w.\-+:/ ]{1,128}", re.ASCII)
_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(%|ms|s)")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much time a hook may take: a share of the run, or seconds per call on average."""

    share: float | None = None
    seconds_per_call: float | None = None

    @classmethod
    def parse(cls, text: str, owner: str) -> Budget:
        """Read ``"2%"``, ``"5ms"`` or ``"1.5s"``."""
        match = _BUDGET.fullmatch(text.strip()) if isinstance(text, str) else None  # type: ignore[redundant-expr]  # users pass anything
        amount = float(match[1]) if match else 0
        if match is None or amount <= 0:
            raise RegistrationError(f"The budget of {owner} must read like '2%', '5ms' or '1.5s', got {text!r}.")
        if match[2] == "%":
            return cls(share=amount / 100)
        return cls(seconds_per_call=amount / 1000 if match[2] == "ms" else amount)

    def __str__(self) -> str:
        if self.share is not None:
            return f"{self.share:.4g} of the run's time"
        return f"{self.seconds_per_call:.4g} s per call"


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The resolved declarations of one registered hook."""

    name: str | None = None
    on: str | None = None
    schedule: Schedule | None = None
    schedules: Mapping[str, Schedule] = field(default_factory=dict[str, Schedule])
    """Schedules for single events, by canonical event name."""
    needs: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    priority: float = 0
    stage: str = "observe"
    on_error: str | None = None
    ranks: str = "main"
    background: bool = False
    budget: Budget | None = None
    enabled: bool = True
    serves: tuple[str, ...] = ()


OPTION_NAMES = tuple(each.name for each in fields(HookOptions) if each.name != "schedules")


def read_options(
    hook: object, given: Mapping[str, object], events: EventTable, clocks: frozenset[str] = frozenset()
) -> HookOptions:
    """Gather a hook's declarations; what is given at registration wins over what the hook says itself."""
    for name in given:
        if name not in OPTION_NAMES:
            raise UnknownNameError("hook option", name, OPTION_NAMES)
    found: dict[str, Any] = {name: getattr(hook, name) for name in OPTION_NAMES if _declares(hook, name)}
    found.update({name: value for name, value in given.items() if value is not None})
    owner = repr(found.get("name") or _label(hook))
    _warn_of_near_misses(hook, owner)

    schedule, schedules = _schedules(found.get("schedule"), owner, events, clocks)
    return HookOptions(
        name=_name(found.get("name")),
        on=events.find(_text(found["on"], "on", owner), where=f"for {owner} to run on").name if "on" in found else None,
        schedule=schedule,
        schedules=schedules,
        needs=_names(found.get("needs", ()), "needs", owner),
        provides=_names(found.get("provides", ()), "provides", owner),
        after=_names(found.get("after", ()), "after", owner),
        before=_names(found.get("before", ()), "before", owner),
        priority=_priority(found.get("priority", 0), owner),
        stage=_choice(found.get("stage", "observe"), "stage", STAGES, owner),
        on_error=_choice(found["on_error"], "on_error", ON_ERROR, owner) if "on_error" in found else None,
        ranks=_choice(found.get("ranks", "main"), "ranks", RANKS, owner),
        background=_flag(found.get("background", False), "background", owner),
        budget=_budget(found.get("budget"), owner),
        enabled=_flag(found.get("enabled", True), "enabled", owner),
        serves=_names(found.get("serves", ()), "serves", owner),
    )


def _declares(hook: object, name: str) -> bool:
    # A pair with its own `should_run` decides for itself, `enabled` included: the seeds' ConfigurableHook does.
    if name == "enabled" and hasattr(hook, "should_run"):
        return False
    value = getattr(hook, name, None)
    # Functions carry no declarations, and a method that happens to share an option's name is not one.
    return value is not None and not callable(value) and not hasattr(hook, "__code__")


def _warn_of_near_misses(hook: object, owner: str) -> None:
    known = {*OPTION_NAMES, "saved", "children"}
    for name, value in vars(type(hook)).items():
        if name.startswith("_") or name in known or callable(value) or isinstance(value, property | staticmethod):
            continue
        near = difflib.get_close_matches(name, OPTION_NAMES, n=1, cutoff=0.85)
        if near:
            log.warning("%s declares %r, which is no hook option; did you mean %r?", owner, name, near[0])


def _schedules(
    value: object, owner: str, events: EventTable, clocks: frozenset[str]
) -> tuple[Schedule | None, dict[str, Schedule]]:
    if value is None:
        return None, {}
    if not isinstance(value, Mapping):
        return _schedule(value, owner, clocks), {}
    by_event = cast("Mapping[str, object]", value)
    found: dict[str, Schedule] = {}
    for name, schedule in by_event.items():
        if not isinstance(name, str):  # type: ignore[redundant-expr]  # users pass anything
            raise RegistrationError(f"The schedules of {owner} are by event name, got the key {name!r}.")
        event = events.find(name.removeprefix("on_"), where=f"in the schedules of {owner}")
        if not event.is_scheduled:
            raise RegistrationError(
                f"{owner} puts a schedule on {event.name!r}, which every hook sees whenever it happens; drop it."
            )
        found[event.name] = _schedule(schedule, owner, clocks)
    return None, found


def _schedule(value: object, owner: str, clocks: frozenset[str]) -> Schedule:
    try:
        schedule = as_schedule(value, clocks)
    except ScheduleError as error:
        raise ScheduleError(f"The schedule of {owner} is refused: {error}") from error
    for leaf in (leaf for group in schedule.alternatives() for leaf in group):
        if leaf.counted_on not in (None, *BUILT_IN_CLOCKS, *clocks):
            raise UnknownNameError(
                "clock",
                str(leaf.counted_on),
                (*BUILT_IN_CLOCKS, *clocks),
                where=f"for the schedule '{schedule}' of {owner}",
            )
    return schedule


def _label(hook: object) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _name(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise RegistrationError(
            f"A hook's name must be 1 to 128 letters, digits, spaces or _ . - + : /, got {value!r}; "
            "its state is saved under it."
        )
    return value


def _names(value: object, option: str, owner: str) -> tuple[str, ...]:
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, Iterable):
        raise RegistrationError(f"{option!r} of {owner} must be a name or a list of names, got {value!r}.")
    names = tuple(cast("Iterable[object]", given))
    for name in names:
        if not isinstance(name, str) or not name:
            raise RegistrationError(f"{option!r} of {owner} must hold names, got {name!r}.")
    return cast("tuple[str, ...]", names)


def _choice(value: object, option: str, known: tuple[str, ...], owner: str) -> str:
    if value in known:
        return cast("str", value)
    hint = did_you_mean(value, known) if isinstance(value, str) else ""
    raise RegistrationError(f"{option!r} of {owner} must be {' or '.join(map(repr, known))}, got {value!r}.{hint}")


def _priority(value: object, owner: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise RegistrationError(f"'priority' of {owner} must be a number (higher runs earlier), got {value!r}.")
    return value


def _flag(value: object, option: str, owner: str) -> bool:
    if not isinstance(value, bool):
        raise RegistrationError(f"{option!r} of {owner} must be True or False, got {value!r}.")
    return value


def _text(value: object, option: str, owner: str) -> str:
    if not isinstance(value, str):
        raise RegistrationError(f"{option!r} of {owner} must be a text, got {value!r}.")
    return value.removeprefix("on_")


def _budget(value: object, owner: str) -> Budget | None:
    if value is None or isinstance(value, Budget):
        return value
    return Budget.parse(cast("str", value), owner)
