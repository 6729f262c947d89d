"""Whether a run goes on, as its statistics tell anybody who asks: workers stop when there is nothing left to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from hookloop.errors import StatsError
from hookloop.stats.reader import StatsReader

ENDS = frozenset({"completed", "stopped", "failed"})
"""The outcomes after which a run does not go on by itself. One that was interrupted or killed is waited for."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What is known of a run."""

    state: str
    """``running``, ``interrupted``, or how it ended: ``completed``, ``stopped`` or ``failed``."""
    attempt: int
    """The latest, from 1; what it alone has done begins anew with it."""
    epochs: int
    env_steps: int
    train_steps: int
    """Completed optimizer steps; this count and the two above are the run's, over all attempts."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to work for."""
        return self.state in ENDS


class RunStatusReader:
    """Reads the status of one run, from any process.

    Call it: ``read()`` returns a ``RunStatus``, or None as long as nothing is known of the run.

    Args:
        url_or_path: What the statistics store was given.
        run_id: The run.
    """

    def __init__(self, url_or_path: str | Path, run_id: str) -> None:
        self._reader = StatsReader(url_or_path)
        self._run_id = run_id
        self._has_begun = False

    def __call__(self) -> RunStatus | None:
        """Return what is known now; None before the run has begun."""
        try:
            run = self._reader.run(self._run_id)
        except StatsError:
            if self._has_begun:
                raise  # it was there: this is no run that has yet to begin
            return None
        self._has_begun = True
        attempts = self._reader.attempts(self._run_id)
        last = self._reader.last_epoch(self._run_id) or {}
        return RunStatus(
            state=run["status"],
            attempt=attempts[-1]["attempt"] if attempts else 1,
            epochs=int(last.get("epoch", 0)),
            env_steps=int(last.get("env_steps", 0)),
            train_steps=int(last.get("optimizer_steps", 0)),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._reader.close()
