"""The serialisable truth of a run: everything that must survive the process, and nothing live."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, cast

from hookloop.core.clocks import Clocks
from hookloop.core.plain import require_plain
from hookloop.errors import HookStateError, did_you_mean

STATE_VERSION = 1

Plain = Any  # strict JSON plus tensors; checked by `require_plain` where it enters a checkpoint


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Who asked the run to stop, why, and when."""

    by: str
    reason: str
    epochs: int
    env_steps: int


@dataclass(slots=True)
class HookFailures:
    """What has gone wrong in one hook so far."""

    count: int = 0
    last_error: str = ""
    last_event: str = ""
    is_disabled: bool = False


@dataclass(slots=True)
class TrainerState:
    """Clocks, statistics and requests of a run; versioned, and saved with every checkpoint."""

    run_id: str = ""
    seed: int = 0
    attempt: int = 1
    clocks: Clocks = field(default_factory=Clocks)

    update_epoch: int = 0
    """The pass over the experience that is running, counted from 0 in each epoch."""
    mb_idx: int = 0
    """The minibatch that is running, counted from 0 in each pass."""
    stop_rollout: bool = False
    """Set by a loss to end the collection of this epoch."""
    stop_update_epoch: bool = False
    """Set by a loss to end the optimisation of this epoch, for example on a large KL divergence."""
    skip_optimizer_step: bool = False
    """Set by ``ctx.request_skip``: the next optimizer step is not taken."""
    training_env_id: int = 0

    rollout_stats: dict[str, Plain] = field(default_factory=dict[str, Plain])
    loss_stats: dict[str, Plain] = field(default_factory=dict[str, Plain])
    gradient_stats: dict[str, Plain] = field(default_factory=dict[str, Plain])
    eval_scores: dict[str, Plain] = field(default_factory=dict[str, Plain])
    curriculum: dict[str, Plain] = field(default_factory=dict[str, Plain])
    best: dict[str, Plain] = field(default_factory=dict[str, Plain])
    extras: dict[str, Plain] = field(default_factory=dict[str, Plain])
    """Values that hooks provide for other hooks, and anything a workload wants saved."""

    latest_checkpoint_uri: str | None = None
    latest_wandb_uri: str | None = None
    latest_saved_epoch: int | None = None

    outcome: str | None = None
    stop: StopRequest | None = None
    requests: dict[str, str] = field(default_factory=dict[str, str])
    """What hooks have asked for and nobody has served yet: the request, and who asked first."""
    failures: dict[str, HookFailures] = field(default_factory=dict[str, HookFailures])
    pending_metrics: list[dict[str, Plain]] = field(default_factory=list[dict[str, Plain]])
    """Rows logged since the last report, each with the clocks at which it was measured."""
    pending_progress_updates: dict[str, Plain] = field(default_factory=dict[str, Plain])
    """What anybody wants shown next, by name; whoever has shown it takes it out, and not before."""

    @property
    def epoch(self) -> int:
        """Completed epochs."""
        return self.clocks.epochs

    @property
    def agent_step(self) -> int:
        """Completed environment steps, over all ranks."""
        return self.clocks.env_steps

    @property
    def global_timestep(self) -> int:
        """Completed environment steps, over all ranks."""
        return self.clocks.env_steps

    def state_dict(self) -> dict[str, Plain]:
        """Return a copy in strict JSON plus tensors, with its version."""
        saved: dict[str, Plain] = {"version": STATE_VERSION, "clocks": self.clocks.reading()}
        for name in _SAVED_FIELDS:
            saved[name] = copy.deepcopy(getattr(self, name))
        saved["stop"] = None if self.stop is None else asdict(self.stop)
        saved["failures"] = {hook: asdict(failures) for hook, failures in self.failures.items()}
        require_plain(saved, "state")
        return saved

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Restore a saved state, in place, so that everybody who holds it sees the restored values."""
        if saved.get("version") != STATE_VERSION:
            raise HookStateError(
                f"The saved state has version {saved.get('version')!r}; this hookloop reads version {STATE_VERSION}."
            )
        self._refuse_unknown(saved)
        self.clocks.load(saved["clocks"])
        for name in _SAVED_FIELDS:
            if name in saved:
                setattr(self, name, copy.deepcopy(saved[name]))
        stop = cast("dict[str, Plain] | None", saved.get("stop"))
        self.stop = None if stop is None else StopRequest(**stop)
        failures = cast("dict[str, dict[str, Plain]]", saved.get("failures", {}))
        self.failures = {hook: HookFailures(**found) for hook, found in failures.items()}

    def _refuse_unknown(self, saved: Mapping[str, Plain]) -> None:
        known = {"version", *(each.name for each in fields(self))}
        unexpected = sorted(set(saved) - known)
        if unexpected:
            raise HookStateError(
                f"The saved state holds {unexpected[0]!r}, which no state has.{did_you_mean(unexpected[0], known)}"
            )


_SAVED_FIELDS = tuple(each.name for each in fields(TrainerState) if each.name not in ("clocks", "stop", "failures"))
