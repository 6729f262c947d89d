"""The clocks of a run: named counters of completed work, and the seconds spent.

Every schedule and every metric row names the clock it is counted on. Counters are written by the
loop alone and always report what is *completed*: at the first ``epoch_end`` the clock ``epochs`` reads 1.
"""

from collections.abc import Callable, Mapping

from hookloop.errors import UnknownNameError

EPOCHS = "epochs"
UPDATE_EPOCHS = "update_epochs"
MINIBATCHES = "minibatches"
OPTIMIZER_STEPS = "optimizer_steps"
ENV_STEPS = "env_steps"
EPISODES = "episodes"
POLICY_VERSION = "policy_version"
SECONDS = "seconds"

COUNTERS = (EPOCHS, UPDATE_EPOCHS, MINIBATCHES, OPTIMIZER_STEPS, ENV_STEPS, EPISODES, POLICY_VERSION)
BUILT_IN_CLOCKS = (*COUNTERS, SECONDS)

# Words people use for a clock, in the seeds and in schedule texts.
CLOCK_ALIASES: Mapping[str, str] = {
    "epoch": EPOCHS,
    "update_epoch": UPDATE_EPOCHS,
    "minibatch": MINIBATCHES,
    "batch": MINIBATCHES,
    "batches": MINIBATCHES,
    "optimizer_step": OPTIMIZER_STEPS,
    "env_step": ENV_STEPS,
    "agent_step": ENV_STEPS,
    "agent_steps": ENV_STEPS,
    "timestep": ENV_STEPS,
    "timesteps": ENV_STEPS,
    "global_timestep": ENV_STEPS,
    "episode": EPISODES,
    "policy_versions": POLICY_VERSION,
    "second": SECONDS,
}


def canonical_clock(name: str, extra: frozenset[str] = frozenset()) -> str:
    """Return the clock ``name`` stands for, or say which clocks there are."""
    clock = CLOCK_ALIASES.get(name, name)
    if clock in BUILT_IN_CLOCKS or clock in extra:
        return clock
    raise UnknownNameError("clock", name, (*BUILT_IN_CLOCKS, *extra))


class Clocks:
    """Completed counts of one run; plain attributes, so that reading one costs nothing."""

    # The counters live in the instance dictionary: `vars(clocks)` is the reading that gates compare
    # with, without a copy. What belongs to the stopwatch behind `seconds` is kept out of it in slots.
    __slots__ = ("__dict__", "_seconds_before", "_started_ns", "_time_ns")

    epochs: int
    update_epochs: int
    minibatches: int
    optimizer_steps: int
    env_steps: int
    episodes: int
    policy_version: int
    seconds: float

    def __init__(self, **readings: float) -> None:
        for clock in COUNTERS:
            setattr(self, clock, 0)
        self.seconds = 0.0
        self._seconds_before = 0.0
        self._started_ns: int | None = None
        self._time_ns: Callable[[], int] | None = None
        self.load(readings)

    def __repr__(self) -> str:
        counted = ", ".join(f"{name}={value}" for name, value in self.reading().items() if value)
        return f"Clocks({counted})"

    def declare(self, name: str) -> None:
        """Add a counter of the workload's own, at zero, unless it is there already."""
        if not name.isidentifier():
            raise UnknownNameError("clock", name, BUILT_IN_CLOCKS)
        vars(self).setdefault(name, 0)

    def reading(self) -> dict[str, float]:
        """Return a copy of all counters as a plain mapping."""
        return dict(vars(self))

    def load(self, readings: Mapping[str, float]) -> None:
        """Set the counters to a saved reading; counters it does not name keep their value."""
        for name, value in readings.items():
            self.declare(name)
            vars(self)[name] = value
        self._seconds_before = self.seconds

    def start(self, time_ns: Callable[[], int]) -> None:
        """Let ``seconds`` run from now on, after what it has counted in earlier attempts."""
        self._seconds_before = self.seconds
        self._time_ns = time_ns
        self._started_ns = time_ns()

    def stop(self) -> None:
        """Hold ``seconds`` where it is."""
        self.refresh_seconds()
        self._started_ns = None

    def refresh_seconds(self) -> float:
        """Read the stopwatch into ``seconds`` and return it."""
        if self._started_ns is not None and self._time_ns is not None:
            self.seconds = self._seconds_before + (self._time_ns() - self._started_ns) / 1e9
        return self.seconds
