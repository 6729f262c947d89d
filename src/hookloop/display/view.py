"""What there is to see of a run at one moment, as plain values: made by whoever looks, drawn by anybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hookloop.boards import GameView

RUNNING = "running"
STOPPING = "stopping"
EPOCHS = "epochs"
_TICKING = (RUNNING, STOPPING)
_PLACES = {"return": 0, "loss": 2, "losses": 2}


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric: its newest value, and its course in a few points."""

    latest: float
    points: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The newest and the best score of something that is evaluated, and the steps they belong to."""

    name: str
    score: float
    step: int
    best: float
    best_step: int


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """The newest durable checkpoint, and the seconds of training at which it was."""

    name: str
    step: int
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class TrackerHealth:
    """How writing to one place goes."""

    name: str
    is_well: bool = True
    queued: int = 0
    dropped: int = 0
    last_error: str = ""
    state: str = ""
    """What it calls its state itself, such as ``behind``."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What has gone wrong in one hook."""

    hook: str
    count: int
    last_error: str = ""
    is_disabled: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A titled piece of text, such as a board; shown below the figures as far as there is room."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """Everything that is shown of a run.

    Shares are parts of the time of this attempt, from 0 to 1; phases and hooks do not overlap. None is what is not
    known.
    """

    run: str = ""
    recipe: str = ""
    device: str = ""
    num_envs: int | None = None
    parameters: int | None = None
    attempt: int = 1
    status: str = RUNNING
    reason: str = ""
    epoch: int = 0
    step: int = 0
    total_steps: int | None = None
    unit: str = "steps"
    """What a step is called: steps, or epochs where those are counted."""
    episodes: int = 0
    steps_per_second: float | None = None
    elapsed_seconds: float = 0.0
    eta_seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    hooks: Mapping[str, float] = field(default_factory=dict[str, float])
    curves: Mapping[str, Curve] = field(default_factory=dict[str, Curve])
    evaluations: tuple[Evaluation, ...] = ()
    checkpoint: SavedCheckpoint | None = None
    trackers: tuple[TrackerHealth, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: Mapping[str, object] = field(default_factory=dict[str, object])
    blocks: tuple[Block, ...] = ()
    game: GameView | None = None
    """A game under way, of a run that plays."""
    game_age_seconds: float | None = None
    """How long ago it was so; None if it is so now, or was so at the end."""
    game_fault: str = ""
    """Why there is none, of a run that plays."""

    @property
    def is_ticking(self) -> bool:
        """Whether time passes for this run."""
        return self.status in _TICKING

    @property
    def progress(self) -> float | None:
        """How much of the run is done, from 0 to 1; None without a goal."""
        if not self.total_steps:
            return None
        return min(max(self.step / self.total_steps, 0.0), 1.0)

    @property
    def hooks_share(self) -> float:
        """The part of the time that all hooks take together."""
        return sum(self.hooks.values())

    @property
    def ordered_curves(self) -> dict[str, Curve]:
        """The curves as they are shown by everybody: returns first, losses last, each by name."""
        return {name: self.curves[name] for name in sorted(self.curves, key=_place)}

    def ticked(self, seconds: float, step: int | None = None) -> RunView:
        """Return the same run some seconds later: the times run on, and the step is the given one, if it is further."""
        if not self.is_ticking:
            return self
        eta = None if self.eta_seconds is None else max(self.eta_seconds - seconds, 0.0)
        age = None if self.game_age_seconds is None else self.game_age_seconds + seconds
        return replace(
            self,
            game_age_seconds=age,
            elapsed_seconds=self.elapsed_seconds + seconds,
            eta_seconds=eta,
            step=self.step if step is None else max(self.step, step),
        )


def _place(name: str) -> tuple[int, str]:
    return _PLACES.get(name.partition("/")[0], 1), name
