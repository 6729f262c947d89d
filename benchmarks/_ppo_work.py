"""What the contenders of benchmarks/ppo.py are asked to do and how they answer; needs the standard library alone."""

from __future__ import annotations

import json
import math
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter, process_time
from typing import Literal, Protocol, TextIO

RECENT_EPISODES = 100


@dataclass(frozen=True, slots=True)
class Work:
    """One training task; equal for every contender of a bench."""

    name: str
    env_id: str
    env_kind: Literal["sync", "native", "envpool"]
    num_envs: int
    horizon: int
    minibatches: int
    epochs: int
    total_env_steps: int
    gate_return: float = -math.inf
    """An outcome below this mean return voids the run's figures."""
    turn_updates: int = 0
    """Length of a turn in a race; 0 means that the contender runs alone, to the end."""
    learning_rate: float = 2.5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy_coef: float = 0.01
    value_coef: float = 0.5
    max_grad_norm: float = 0.5
    anneals_lr: bool = False
    anneals_clip: bool = False
    annealing_env_steps: int | None = None
    """Length of the linear schedules; ``None`` means the whole run."""
    uses_gsde: bool = False
    """Generalised state-dependent exploration, a new noise matrix every four steps."""
    target_return: float | None = None
    """Stop as soon as the last ``RECENT_EPISODES`` episodes reach this mean."""
    greedy_episodes: int = 0
    """Greedy episodes to play after training."""
    seed: int = 1
    threads: int = 1

    @property
    def batch_rows(self) -> int:
        return self.num_envs * self.horizon

    @property
    def updates(self) -> int:
        """Return how many updates a race takes; an environment with filler rows yields fewer env steps by then."""
        return math.ceil(self.total_env_steps / self.batch_rows)

    @property
    def turns(self) -> int:
        return self.updates // self.turn_updates

    @property
    def minibatch_rows(self) -> int:
        return self.batch_rows // self.minibatches

    def progress_left(self, env_steps: int) -> float:
        """Return the factor of a linear schedule: from 1 down to 0, and 0 from then on."""
        return max(0.0, 1.0 - env_steps / (self.annealing_env_steps or self.total_env_steps))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a contender's run came to. Only real transitions count as env steps, no autoreset filler rows."""

    env_steps: int
    mean_return: float
    """Mean over the last ``RECENT_EPISODES`` training episodes, unless the note says otherwise."""
    episodes: int
    greedy_return: float | None = None
    loss_digest: str = ""
    """Hash of every loss of the run, where two contenders must agree bit by bit."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A few updates' worth of training by one contender."""

    env_steps: int
    seconds: float
    cpu_seconds: float


class Pace(Protocol):
    """Called with the env steps done so far: once when everything is built, then after each update."""

    def __call__(self, env_steps: int, updates: int = 1) -> None: ...


Contender = Callable[[Work, Pace], Outcome]


class TurnTaking:
    """The worker's side of a race: trains while it is this worker's turn, and waits otherwise."""

    def __init__(self, work: Work, *, grants: TextIO, reports: TextIO) -> None:
        self._work = work
        self._grants = grants
        self._reports = reports
        self._is_built = False
        self._updates = 0
        self._turn_start: tuple[int, float, float] = (0, 0.0, 0.0)

    def __call__(self, env_steps: int, updates: int = 1) -> None:
        now, cpu_now = perf_counter(), process_time()
        start_env_steps, started, cpu_started = self._turn_start
        if not self._is_built:
            self._is_built = True
            if self._work.turn_updates and self._work.threads == 1:
                pin_to_one_core()
            self.report(built=True, build_cpu_seconds=cpu_now)
        else:
            self._updates += updates
            if not self._work.turn_updates or self._updates < self._work.turn_updates:
                return
            self.report(turn=asdict(Turn(env_steps - start_env_steps, now - started, cpu_now - cpu_started)))
        self._updates = 0
        if not self._grants.readline():
            sys.exit("the benchmark that started this worker is gone")
        self._turn_start = (env_steps, perf_counter(), process_time())

    def report(self, **values: object) -> None:
        self._reports.write(json.dumps(values) + "\n")
        self._reports.flush()


def work_in_turns(contenders: dict[str, Contender], arguments: list[str]) -> None:
    """Run one contender by name as a worker process: grants come from stdin, reports go to stdout."""
    name, work = arguments[0], Work(**json.loads(arguments[1]))
    # Reports get a file descriptor of their own, so that whatever a contender prints cannot mix with them.
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    turns = TurnTaking(work, grants=sys.stdin, reports=reports)
    try:
        outcome = contenders[name](work, turns)
    except ModuleNotFoundError as error:
        turns.report(missing=str(error))
    else:
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        turns.report(outcome=asdict(outcome), peak_memory_mib=round(peak_mib))


def pin_to_one_core() -> None:
    """Stay on one core: the same for all contenders, and a limit for thread pools that ignore their setting."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
