"""How fast a run goes, and how long it will take."""

from __future__ import annotations

from collections import deque

SPEED_SECONDS = 10.0
ETA_SECONDS = 60.0
_LEAST_SECONDS = 0.05  # over less than that a speed says nothing
_SAMPLES = 240


class Pace:
    """Steps per second over the latest seconds of training."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=_SAMPLES)

    def add(self, seconds: float, step: float) -> None:
        """Note where the run is; a step back, after a roll-back, begins anew."""
        if self._samples and (step < self._samples[-1][1] or seconds < self._samples[-1][0]):
            self._samples.clear()
        if len(self._samples) > 1 and seconds - self._samples[-2][0] < ETA_SECONDS / _SAMPLES:
            self._samples.pop()  # so close to the one before that it says nothing new
        self._samples.append((seconds, step))

    def speed(self, over_seconds: float = SPEED_SECONDS) -> float | None:
        """Return steps per second over the latest seconds; None before enough time has passed."""
        if len(self._samples) < 2:
            return None
        now, step = self._samples[-1]
        # The newest sample that is old enough; the oldest, if none is.
        then, before = next(
            (sample for sample in reversed(self._samples) if now - sample[0] >= over_seconds), self._samples[0]
        )
        return (step - before) / (now - then) if now - then >= _LEAST_SECONDS else None

    def eta_seconds(self, total: float | None) -> float | None:
        """Return the time left until ``total``, at the speed of the last minute; None if that is not known."""
        speed = self.speed(ETA_SECONDS)
        if total is None or not speed or not self._samples:
            return None
        return max(total - self._samples[-1][1], 0.0) / speed
