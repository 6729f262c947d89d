"""Whether the lessons of a curriculum are in good health: what was learned stays, and what is being learned moves."""

from __future__ import annotations

import logging
import statistics
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from hookloop.core import HookContext, PeriodicHook
from hookloop.errors import RegistrationError

log = logging.getLogger("hookloop.hooks.health_monitor")

Plain = Any
KINDS = ("regression", "stagnation", "volatility", "prolonged")
SMALLEST_GAIN = 0.01
SHORTEST_VIEW = 5


@dataclass(frozen=True, slots=True)
class HealthIssue:
    """Something that is wrong with a lesson."""

    lesson: str
    kind: Literal["regression", "stagnation", "volatility", "prolonged"]
    is_critical: bool
    text: str


@dataclass(slots=True)
class _Watched:
    """What the monitor remembers of one lesson."""

    looks: int = 0
    best: float = 0.0
    looks_at_best: int = 0
    recent: list[float] = field(default_factory=list[float])
    told: dict[str, int] = field(default_factory=dict[str, int])
    """When each kind of issue was last told of, in looks of the monitor."""


class HealthMonitorHook(PeriodicHook):
    """Warn when a mastered lesson is being forgotten, or one that is trained stagnates, swings or takes too long.

    It reads ``ctx.state.curriculum`` and changes nothing. Times are counted in looks: with the defaults, epochs. An
    issue is told of in the log, once per ``cooldown``; the number of lessons with it is a metric at every look.

    Args:
        frequency: Steps between two looks, on the clock of the event.
        start_step: No look before this step.
        on: The event to look at; ``step_end`` for a worker.
        warning_success: A graduated lesson below this is being forgotten, and one above it does not stagnate.
        critical_success: A graduated lesson below this is critical.
        stagnation_looks: So many looks without a better success are too many.
        volatility: A larger standard deviation of the success is a swing.
        volatility_looks: How many looks that deviation is taken over.
        prolonged_looks: So many looks without graduation are too many.
        cooldown_looks: How long the same issue of a lesson is not told of again.
    """

    on = "epoch_end"
    on_error = "disable"
    stage = "report"

    def __init__(
        self,
        frequency: int = 1,
        start_step: int = 0,
        *,
        on: str = "epoch_end",
        warning_success: float = 0.85,
        critical_success: float = 0.70,
        stagnation_looks: int = 100,
        volatility: float = 0.15,
        volatility_looks: int = 20,
        prolonged_looks: int = 1000,
        cooldown_looks: int = 200,
    ) -> None:
        super().__init__(frequency, start_step)
        if not critical_success <= warning_success:
            raise RegistrationError(
                f"critical_success={critical_success} lies above warning_success={warning_success}; swap them."
            )
        if volatility_looks < SHORTEST_VIEW:
            raise RegistrationError(f"volatility_looks must be at least {SHORTEST_VIEW}, got {volatility_looks}.")
        self.on = on
        self.warning_success, self.critical_success = warning_success, critical_success
        self.stagnation_looks, self.prolonged_looks = stagnation_looks, prolonged_looks
        self.volatility, self.volatility_looks = volatility, volatility_looks
        self.cooldown_looks = cooldown_looks
        self.issues: list[HealthIssue] = []
        self._looks = 0
        self._watched: dict[str, _Watched] = {}

    def run(self, context: HookContext) -> dict[str, Plain] | None:
        """Look at all lessons that are open."""
        lessons: Mapping[str, Plain] = context.state.curriculum.get("lessons", {})
        if not lessons:
            return None
        self._looks += 1
        self.issues = [
            issue
            for name, about in lessons.items()
            if about["state"] != "locked"
            for issue in self._look_at(name, about)
        ]
        for issue in self.issues:
            self._tell(issue)
        counts = Counter(issue.kind for issue in self.issues)
        return {**{kind: counts[kind] for kind in KINDS}, "critical": sum(issue.is_critical for issue in self.issues)}

    def state_dict(self) -> dict[str, Plain]:
        """Return what it remembers."""
        return {"looks": self._looks, "watched": {name: asdict(watched) for name, watched in self._watched.items()}}

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from what it remembered."""
        self._looks = saved["looks"]
        self._watched = {name: _Watched(**watched) for name, watched in saved["watched"].items()}

    def _look_at(self, name: str, about: Mapping[str, Plain]) -> Iterator[HealthIssue]:
        watched = self._watched.setdefault(name, _Watched())
        success = float(about["success"])
        watched.recent = list(deque([*watched.recent, success], maxlen=self.volatility_looks))
        if about["state"] == "graduated":
            watched.looks, watched.best, watched.looks_at_best = 0, 0.0, 0
            yield from self._forgotten(name, about)
            return
        watched.looks += 1
        if success > watched.best + SMALLEST_GAIN:
            watched.best, watched.looks_at_best = success, watched.looks
        still = watched.looks - watched.looks_at_best
        if still >= self.stagnation_looks and success < self.warning_success:
            yield HealthIssue(name, "stagnation", False, f"no better than {watched.best:.2f} for {still} looks")
        if watched.looks >= self.prolonged_looks:
            yield HealthIssue(name, "prolonged", False, f"trained for {watched.looks} looks without graduating")
        if len(watched.recent) >= SHORTEST_VIEW and (swing := statistics.pstdev(watched.recent)) > self.volatility:
            yield HealthIssue(name, "volatility", False, f"success swings by {swing:.2f} around its mean")

    def _forgotten(self, name: str, about: Mapping[str, Plain]) -> Iterator[HealthIssue]:
        found = about["success"] if about["evaluated_success"] is None else about["evaluated_success"]
        if found < self.warning_success:
            text = f"graduated, but succeeds only {found:.2f}"
            yield HealthIssue(name, "regression", found < self.critical_success, text)

    def _tell(self, issue: HealthIssue) -> None:
        told = self._watched[issue.lesson].told
        key = f"{issue.kind}, critical" if issue.is_critical else issue.kind
        if key not in told or self._looks - told[key] >= self.cooldown_looks:
            told[key] = self._looks
            level = logging.ERROR if issue.is_critical else logging.WARNING
            log.log(level, "lesson %s: %s: %s", issue.lesson, issue.kind, issue.text)
