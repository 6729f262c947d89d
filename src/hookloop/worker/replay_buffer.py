"""Rollouts that wait to be learned from: fresh ones, from all lessons alike, none too often."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hookloop.core import stream
from hookloop.errors import HookStateError
from hookloop.worker.replay_config import ReplayBufferConfig
from hookloop.worker.rollouts import Rollout

Plain = Any
Loss = Literal["future", "stale_steps", "stale_seconds", "zero_variance", "not_finite", "capacity", "retired"]
"""Why a rollout was not taken, or not kept."""

STATE_VERSION = 1
NO_LESSON = ""


@dataclass(slots=True)
class _Kept:
    rollout: Rollout
    samples: int = 0


class ReplayBuffer:
    """Keeps the newest rollouts of each lesson, and draws from them.

    ``begin_step`` says where the trainer is: from then on rollouts whose weights lag too far behind are let go, and so
    are those with weights that the trainer does not have, because it went back to an older checkpoint. Every rollout
    that is not taken or not kept is counted in ``lost``, by the reason.

    Args:
        config: What to keep.
        seed: Draws follow from it, and from how many there were before.
        wall_time: What time it is, on the clock of ``Rollout.created_seconds``.
    """

    def __init__(
        self,
        config: ReplayBufferConfig | None = None,
        *,
        seed: int = 0,
        wall_time: Callable[[], float] = time.time,
    ) -> None:
        self.config = ReplayBufferConfig() if config is None else config
        self.version = 0
        """The trainer's: of the weights it would hand out now."""
        self.taken = 0
        """Rollouts that came in, over all time."""
        self.lost: Counter[Loss] = Counter()
        self._seed = seed
        self._draws = 0
        self._wall_time = wall_time
        self._kept: dict[str, list[_Kept]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    @property
    def sizes(self) -> dict[str, int]:
        """How many rollouts of each lesson are kept; those without a lesson stand under an empty name."""
        return {lesson: len(kept) for lesson, kept in self._kept.items() if kept}

    def begin_step(self, version: int) -> None:
        """Say which version the trainer's weights have now, forward or back, and let go of what does not fit it."""
        self.version = version
        self._let_go()

    def add(self, rollouts: Iterable[Rollout]) -> int:
        """Take rollouts in, whole groups at once, and return how many were taken."""
        arrived = list(rollouts)
        dull = self._groups_without_variance(arrived) if self.config.drop_zero_variance_groups else set()
        now, count = self._wall_time(), 0
        for rollout in arrived:
            why = "zero_variance" if (rollout.lesson, rollout.group) in dull else self._unfit(rollout, now)
            if why is not None:
                self.lost[why] += 1
                continue
            kept = self._kept.setdefault(rollout.lesson or NO_LESSON, [])
            kept.append(_Kept(rollout))
            count += 1
            if len(kept) > self.config.capacity:
                kept.pop(0)
                self.lost["capacity"] += 1
        self.taken += count
        return count

    def sample(self, count: int) -> list[Rollout] | None:
        """Draw ``count`` different rollouts; None, and nothing is drawn, while there are not so many.

        Each lesson gives as many as any other, as far as it has them. Within a lesson the newer are likelier.
        """
        if count < 1:
            raise ValueError(f"A sample has at least 1 rollout, got {count}.")
        self._let_go()
        if len(self) < count:
            return None
        rng = stream(self._seed, "replay", self._draws)
        self._draws += 1
        drawn: list[_Kept] = []
        for lesson, share in self._shares(count, rng).items():
            drawn += _weighted(self._kept[lesson], share, self.config.recency_alpha, rng)
        for kept in drawn:
            kept.samples += 1
        self._retire()
        return [kept.rollout for kept in drawn]

    def metrics(self) -> dict[str, float]:
        """Return ``replay/size``, ``replay/taken`` and ``replay/lost/<reason>``."""
        found = {"replay/size": float(len(self)), "replay/taken": float(self.taken)}
        return {**found, **{f"replay/lost/{why}": float(self.lost[why]) for why in get_args(Loss)}}

    def state_dict(self) -> dict[str, Plain]:
        """Return plain data and arrays from which the same draws follow."""
        return {
            "state_version": STATE_VERSION,
            "version": self.version,
            "taken": self.taken,
            "lost": dict(self.lost),
            "seed": self._seed,
            "draws": self._draws,
            "kept": {
                lesson: [{"rollout": each.rollout.state_dict(), "samples": each.samples} for each in kept]
                for lesson, kept in self._kept.items()
            },
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved buffer."""
        if saved.get("state_version") != STATE_VERSION:
            raise HookStateError(
                f"The saved buffer has version {saved.get('state_version')!r}; this hookloop reads {STATE_VERSION}."
            )
        self.version, self.taken, self.lost = saved["version"], saved["taken"], Counter(saved["lost"])
        self._seed, self._draws = saved["seed"], saved["draws"]
        self._kept = {
            lesson: [_Kept(Rollout.from_state_dict(each["rollout"]), each["samples"]) for each in kept]
            for lesson, kept in saved["kept"].items()
        }

    def _groups_without_variance(self, rollouts: Sequence[Rollout]) -> set[tuple[str | None, str | None]]:
        rewards: dict[tuple[str | None, str | None], list[float]] = {}
        for rollout in rollouts:
            if rollout.group is not None:
                rewards.setdefault((rollout.lesson, rollout.group), []).append(rollout.reward)
        return {group for group, earned in rewards.items() if max(earned) == min(earned)}

    def _unfit(self, rollout: Rollout, now: float) -> Loss | None:
        """Return why a rollout does not fit where the trainer is; None if it does."""
        config, lag = self.config, self.version - rollout.weight_version
        if not math.isfinite(rollout.reward):
            return "not_finite"
        if lag < 0:
            return "future"
        if config.max_age_steps is not None and lag > config.max_age_steps:
            return "stale_steps"
        if config.max_age_seconds is not None and now - rollout.created_seconds > config.max_age_seconds:
            return "stale_seconds"
        return None

    def _let_go(self) -> None:
        now = self._wall_time()
        for lesson, kept in self._kept.items():
            fitting: list[_Kept] = []
            for each in kept:
                why = self._unfit(each.rollout, now)
                if why is None:
                    fitting.append(each)
                else:
                    self.lost[why] += 1
            self._kept[lesson] = fitting

    def _retire(self) -> None:
        most = self.config.max_samples
        if most is None:
            return
        for lesson, kept in self._kept.items():
            usable = [each for each in kept if each.samples < most]
            self.lost["retired"] += len(kept) - len(usable)
            self._kept[lesson] = usable

    def _shares(self, count: int, rng: random.Random) -> dict[str, int]:
        """Return how many each lesson gives: one after the other, in an order by chance, until there are enough."""
        lessons = sorted(self.sizes)
        rng.shuffle(lessons)
        shares = dict.fromkeys(lessons, 0)
        left = count
        while left:
            for lesson in lessons:
                if left and shares[lesson] < len(self._kept[lesson]):
                    shares[lesson] += 1
                    left -= 1
        return shares


def _weighted(kept: Sequence[_Kept], count: int, alpha: float, rng: random.Random) -> list[_Kept]:
    """Draw different ones with probabilities in proportion to rank**alpha, the newest having the highest rank.

    Each gets the key log(u) / weight, and the largest keys win (Efraimidis and Spirakis, 2006).
    """
    keys = [math.log(1.0 - rng.random()) / rank**alpha for rank in range(1, len(kept) + 1)]
    chosen = sorted(range(len(kept)), key=keys.__getitem__, reverse=True)[:count]
    return [kept[index] for index in chosen]
