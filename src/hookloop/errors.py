"""The exceptions a caller may want to catch, and the words for a near miss.

::

    HookloopError
    ├── RegistrationError (ValueError)      a hook was refused before the first step
    │   ├── UnknownNameError (LookupError)  a misspelt event, option, parameter, clock, key or plugin
    │   ├── NameClashError                  two hooks claim one name
    │   └── OrderError                      a cycle, a missing provider, a stage turned round
    ├── ScheduleError (ValueError)          a schedule that means nothing
    ├── HookResultError (TypeError)         a hook returned something that is not metrics
    ├── HookStateError (ValueError)         a checkpoint does not fit the hooks or the state
    ├── NonFiniteError (ArithmeticError)    training met a NaN or an infinity
    ├── WorkloadError (RuntimeError)        a workload broke the loop's contract
    ├── ConfigError (ValueError)            a file or mapping that is not a valid configuration
    ├── HeartbeatError (ValueError)         a file is no heartbeat of a run
    ├── RunLockedError (RuntimeError)       another process writes to the run's folder
    ├── LocationError (OSError)             a folder cannot be published to or fetched from a place
    ├── CheckpointError (RuntimeError)      a checkpoint cannot be written or used
    │   ├── NoCheckpointError (LookupError)     there is none that fits the selector
    │   ├── DamagedCheckpointError              a file is missing, cut off, changed or hostile
    │   └── CheckpointWriteError (OSError)      the disk refused; the checkpoints before are intact
    ├── StatsError (RuntimeError)           the statistics of a run cannot be read or written
    │   ├── StatsSchemaError                    the database is from a newer release, or from something else
    │   ├── StatsQueryError (ValueError)        a query that is refused, wrong or too slow
    │   └── StatsWriteError (OSError)           rows are not durable; they are kept and written later
    ├── TrackerError (RuntimeError)         a tracker cannot do what it is asked to
    ├── EvaluationError (RuntimeError)      an evaluation could not be carried out
    │   └── NoEpisodesError                     not one episode was finished, so there is nothing to score
    ├── ReplayError (ValueError)            a file is no replay, or is cut off, changed or hostile
    ├── SnapshotError (ValueError)          a file is no snapshot of a game, or one of a newer release
    └── MissingExtraError (ModuleNotFoundError)  an optional package is not installed
"""

from collections.abc import Iterable
from difflib import get_close_matches


class HookloopError(Exception):
    """The root of everything hookloop raises on purpose."""


class RegistrationError(HookloopError, ValueError):
    """A hook was refused, before the first step, because of how it is written or declared."""


class UnknownNameError(RegistrationError, LookupError):
    """A name was used that is not known where it stands."""

    def __init__(self, what: str, name: str, known: Iterable[str], *, where: str = "") -> None:
        place = f" {where}" if where else ""
        super().__init__(f"There is no {what} {name!r}{place}.{did_you_mean(name, known)}")


class NameClashError(RegistrationError):
    """Two hooks claim the same name, under which their state would be saved."""


class OrderError(RegistrationError):
    """The declared order cannot be kept: a cycle, a missing provider, or a stage turned round."""


class ScheduleError(HookloopError, ValueError):
    """A schedule that can never mean anything, or a text that is no schedule."""


class HookResultError(HookloopError, TypeError):
    """A hook returned something other than a mapping of metrics or None."""


class HookStateError(HookloopError, ValueError):
    """Saved state does not fit the hooks, or a hook's state cannot be saved."""


class NonFiniteError(HookloopError, ArithmeticError):
    """A loss, gradients, parameters or data are not finite, and going on would spoil the run."""


class WorkloadError(HookloopError, RuntimeError):
    """A workload did something the loop's contract rules out."""


class RankLostError(HookloopError, RuntimeError):
    """Another process of the run has ended, or does not answer."""


class RanksDifferError(HookloopError, RuntimeError):
    """The processes of a run are not doing the same: other settings, other code, or other weights."""


class ConfigError(HookloopError, ValueError):
    """A configuration file or mapping is not valid."""


class HeartbeatError(HookloopError, ValueError):
    """A file is not the heartbeat of a run."""


class DisplayError(HookloopError, OSError):
    """A display cannot draw: its terminal is gone."""


class RunLockedError(HookloopError, RuntimeError):
    """Another process holds the lock of the run's folder."""


class LocationError(HookloopError, OSError):
    """A folder cannot be published to a place, or what is there cannot be fetched."""


class CheckpointError(HookloopError, RuntimeError):
    """A checkpoint cannot be written or used."""


class NoCheckpointError(CheckpointError, LookupError):
    """There is no checkpoint that fits the selector."""


class DamagedCheckpointError(CheckpointError):
    """A checkpoint is not what was written: a file is missing, cut off, changed, swapped or hostile."""


class CheckpointWriteError(CheckpointError, OSError):
    """A checkpoint could not be written; those before it are intact."""

    def __init__(self, message: str, number: int | None = None) -> None:
        super().__init__(message)
        self.errno = number  # by hand: what is a RuntimeError, too, would show (number, message) as its text


class StatsError(HookloopError, RuntimeError):
    """The statistics of a run cannot be read or written."""


class StatsSchemaError(StatsError):
    """A statistics database is from a newer release, or is something else."""


class StatsQueryError(StatsError, ValueError):
    """A query is refused because it could write, or it failed, or it took too long."""


class StatsWriteError(StatsError, OSError):
    """Rows that were logged are not durable yet; they are kept and tried again."""


class TrackerError(HookloopError, RuntimeError):
    """A tracker cannot do what it is asked to."""


class EvaluationError(HookloopError, RuntimeError):
    """An evaluation could not be carried out."""


class NoEpisodesError(EvaluationError):
    """An evaluation has finished no episode, so there is nothing to score."""


class ReplayError(HookloopError, ValueError):
    """A file is not a replay: it is something else, cut off, changed or hostile; or an episode cannot be one."""


class SnapshotError(HookloopError, ValueError):
    """A file is no snapshot of a game, is cut off, changed or hostile, or was written by a newer release."""


class MissingExtraError(HookloopError, ModuleNotFoundError):
    """An optional package is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'hookloop[{extra}]'")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: the nearest right answer, or all of them."""
    names = sorted(set(known))
    folded = {each.casefold(): each for each in names}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if near:
        return f" Did you mean {folded[near[0]]!r}?"
    return f" Known: {', '.join(names)}." if names else ""
