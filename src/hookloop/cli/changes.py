"""What changed between a run and its resume: harmless, refused unless forced, or impossible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hookloop.config.settings import ClusterSettings
from hookloop.errors import ConfigError

Plain = Any
Effect = Literal["harmless", "changes training", "impossible"]

# What only decides when a run ends, what it writes, and what it shows.
_HARMLESS = (
    *ClusterSettings.model_fields,
    "evaluation",
    "replays",
    "stop_at_return",
    "pass_k",
    "patience",
    "training.checkpoint_dir",
    "training.keep_best",
    "training.keep_last",
    "training.mode",
    "training.monitor",
    "training.num_workers",
    "training.save_every_epochs",
    "training.save_every_steps",
    "training.seed",  # the run's own seed takes its place
    "training.train_metrics",
    "training.val_batch_size",
    "training.validate_every_epochs",
    "workers",
)
# What the saved state has the shape of.
_IMPOSSIBLE = (
    "env",
    "slots",
    "curriculum.slots",
    "curriculum.lessons.*.env",
    "policy",
    "game",
    "network",
    "losses.*.kind",
    "trainer.horizon",
    "trainer.segment_length",
    "model",
    "data",
    "training.optimizer",
)
# How long a run is going to be: harmless, unless values follow the share of it that is done.
_LENGTHS = ("total_env_steps", "training.epochs", "training.max_steps")


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that is not what it was."""

    path: str
    before: Plain
    after: Plain
    effect: Effect

    def __str__(self) -> str:
        return f"{self.path}: {self.before!r} -> {self.after!r} ({self.effect})"


def changes_between(before: Mapping[str, Plain], after: Mapping[str, Plain]) -> list[Change]:
    """Return every setting that differs, by its path, with what the change does."""
    old, new = _leaves(before, ""), _leaves(after, "")
    is_scheduled = bool(before.get("trainer", {}).get("values")) or _learning_rate_follows_length(before)
    return [
        Change(path, old.get(path), new.get(path), _effect(path, is_scheduled=is_scheduled))
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    ]


def refuse_changes(changes: Sequence[Change], *, is_forced: bool) -> None:
    """Refuse what cannot be changed, and what should not be without saying so."""
    impossible = [change for change in changes if change.effect == "impossible"]
    if impossible:
        raise ConfigError(
            f"{_listed(impossible)}\nThe saved run has the shape of the settings it began with; "
            "begin a new run to change them."
        )
    altering = [change for change in changes if change.effect == "changes training"]
    if altering and not is_forced:
        raise ConfigError(
            f"{_listed(altering)}\nThe run would no longer be the one it was; add --force to go on all the same."
        )


def _effect(path: str, *, is_scheduled: bool) -> Effect:
    if _is_below(path, _IMPOSSIBLE):
        return "impossible"
    if path in _LENGTHS:
        return "changes training" if is_scheduled else "harmless"
    return "harmless" if _is_below(path, _HARMLESS) else "changes training"


def _learning_rate_follows_length(settings: Mapping[str, Plain]) -> bool:
    return settings.get("training", {}).get("lr_schedule", "constant") != "constant"


def _is_below(path: str, roots: Sequence[str]) -> bool:
    parts = path.split(".")
    for root in roots:
        wanted = root.split(".")
        if len(parts) >= len(wanted) and all(w in ("*", p) for w, p in zip(wanted, parts, strict=False)):
            return True
    return False


def _leaves(settings: Mapping[str, Plain], prefix: str) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            found.update(_leaves(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found


def _listed(changes: Sequence[Change]) -> str:
    return "\n".join(map(str, changes))
