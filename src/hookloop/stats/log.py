"""What can be logged, and the rows that become of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hookloop.stats.batches import Logged, LoggedPoints, LoggedRow, Place
from hookloop.stats.rows import as_json, flat, number, split, text, whole

if TYPE_CHECKING:
    from hookloop.core.costs import HookCost
    from hookloop.core.state import HookFailures

Plain = Any

log = logging.getLogger("hookloop.stats")

_FLOATS = frozenset({float})
_FLAT_CLOCKS = ("epochs", "epoch", "env_steps", "optimizer_steps", "seconds")


class HasReading(Protocol):
    """Clocks, as the loop has them."""

    def reading(self) -> dict[str, float]:
        """Return all counters as a mapping."""
        ...


Reading = Mapping[str, float] | HasReading


class StatsLog:
    """The calls that log; each makes plain rows in the caller's thread and hands them on.

    Args:
        put: Takes what is logged, and how many rows it is.
        wall_time: What time it is, in seconds since 1970.
        after_epoch: The last epoch that was logged before.
    """

    def __init__(
        self, put: Callable[[Logged, int], None], wall_time: Callable[[], float], *, after_epoch: int = 0
    ) -> None:
        self._put_logged = put
        self._wall_time = wall_time
        self._after_epoch = after_epoch
        self._warned: set[str] = set()

    def log_metrics(self, rows: Sequence[Mapping[str, Plain]]) -> None:
        """Log the rows of ``ctx.drain_metrics()``: nested mappings by path, lists by mean, tensors by item."""
        for row in rows:
            values = row["values"]
            # Taken now: a tensor may be written over before the thread comes to it.
            plain = dict(values) if _FLOATS.issuperset(map(type, values.values())) else self._numbers(values)
            if plain:
                reading = row["clocks"]
                seconds = float(reading.get("seconds", 0.0))
                self._put_logged(
                    LoggedPoints(self._place(reading), seconds, row.get("hook", ""), row.get("event", ""), plain),
                    len(plain),
                )

    def log_epoch(self, clocks: Reading) -> None:
        """Log that an epoch is completed; what was logged since the one before belongs to it."""
        reading = reading_of(clocks)
        row = {
            name: whole(reading.get(name, 0)) for name in ("env_steps", "optimizer_steps", "episodes", "policy_version")
        }
        row["epoch"] = whole(reading.get("epochs", 0))
        self._put("epochs", {**row, **self._times(reading)})
        self._after_epoch = row["epoch"]

    def log_episodes(self, rows: Sequence[Mapping[str, Plain]]) -> None:
        """Log finished episodes: ``return``, ``length``, ``lesson``, ``index``, and ``clocks`` or the clocks' names."""
        for row in rows:
            rest = dict(row)
            reading = reading_of(rest.pop("clocks", None) or _taken(rest, _FLAT_CLOCKS))
            value, nonfinite = split(number(rest.pop("return", None)))
            index, length, lesson = rest.pop("index", None), rest.pop("length", None), rest.pop("lesson", None)
            found = {
                "seconds": float(reading.get("seconds", 0.0)),
                "env_index": None if index is None else whole(index),
                "return": value,
                "nonfinite": nonfinite,
                "length": None if length is None else whole(length),
                "lesson": None if lesson is None else text(lesson),
                "about": as_json(rest) if rest else None,
            }
            self._put("episodes", {**self._placed(reading), **found})

    def log_evaluation(
        self,
        name: str,
        scores: Mapping[str, Plain],
        clocks: Reading,
        *,
        score: float | None = None,
        episodes: int = 0,
        checkpoint: str | None = None,
        **about: Plain,
    ) -> None:
        """Log an evaluation; ``score`` is the one that counts, the first of ``scores`` unless given."""
        numbers = {key: value for key, value in flat(scores) if value is not None}
        main = next(iter(numbers.values()), None) if score is None else number(score)
        value, nonfinite = split(main)
        found = {
            "name": text(name),
            "score": value,
            "nonfinite": nonfinite,
            "scores": as_json(numbers),
            "episodes": whole(episodes),
            "checkpoint": None if checkpoint is None else text(checkpoint),
        }
        self._log_at("evaluations", clocks, found, about)

    def log_checkpoint(
        self,
        name: str,
        clocks: Reading,
        *,
        checkpoint_id: str = "",
        uri: str = "",
        kind: str = "periodic",
        size_bytes: int | None = None,
        metrics: Mapping[str, Plain] | None = None,
        **about: Plain,
    ) -> None:
        """Log a checkpoint that is durable."""
        found = {
            "name": text(name),
            "checkpoint_id": text(checkpoint_id),
            "uri": text(uri),
            "kind": text(kind),
            "size_bytes": None if size_bytes is None else whole(size_bytes),
            "metrics": None if metrics is None else as_json(metrics),
        }
        self._log_at("checkpoints", clocks, found, about)

    def log_replay(
        self, name: str, clocks: Reading, *, uri: str = "", length: int | None = None, **about: Plain
    ) -> None:
        """Log a recorded episode; ``return`` among the rest is its sum of rewards."""
        value, nonfinite = split(number(about.pop("return", None)))
        found = {"name": text(name), "uri": text(uri), "return": value, "nonfinite": nonfinite}
        found["length"] = None if length is None else whole(length)
        self._log_at("replays", clocks, found, about)

    def log_event(self, who: str, what: str, why: str, clocks: Reading, **about: Plain) -> None:
        """Log that something happened: who did what, why, and when."""
        self._log_at("events", clocks, {"who": text(who), "what": text(what), "why": text(why)}, about)

    def log_hook_costs(self, costs: Iterable[HookCost]) -> None:
        """Log what hooks have cost so far in this attempt; the figures logged before are replaced."""
        for cost in costs:
            figures = {name: whole(getattr(cost, name)) for name in ("calls", "total_ns", "max_ns", "timed_calls")}
            self._put("hook_costs", {"hook": text(cost.hook), "event": text(cost.event), **figures})

    def log_hook_failures(self, failures: Mapping[str, HookFailures]) -> None:
        """Log what has gone wrong in hooks so far: ``state.failures``."""
        for hook, found in failures.items():
            row = {
                "hook": text(hook),
                "count": whole(found.count),
                "last_error": text(found.last_error),
                "last_event": text(found.last_event),
                "is_disabled": bool(found.is_disabled),
            }
            self._put("hook_failures", row)

    def log_game(
        self,
        players: Sequence[str],
        winner: str | None,
        clocks: Reading,
        *,
        moves: int | None = None,
        opening: str | None = None,
        replay: str | None = None,
        **about: Plain,
    ) -> None:
        """Log a game: who sat where and who won, None for a draw."""
        found = {
            "players": as_json(list(players)),
            "winner": None if winner is None else text(winner),
            "moves": None if moves is None else whole(moves),
            "opening": None if opening is None else text(opening),
            "replay": None if replay is None else text(replay),
        }
        self._log_at("games", clocks, found, about)

    def log_rating(
        self, player: str, rating: float, clocks: Reading, *, deviation: float | None = None, games: int | None = None
    ) -> None:
        """Log a player's rating."""
        value, nonfinite = split(number(rating))
        found = {"player": text(player), "rating": value, "nonfinite": nonfinite}
        found["deviation"] = split(number(deviation))[0]
        found["games"] = None if games is None else whole(games)
        self._log_at("ratings", clocks, found)

    def log_lineage(self, child: str, parent: str, relation: str, clocks: Reading, **about: Plain) -> None:
        """Log what something was made from: a checkpoint from the one before, a run from another's checkpoint."""
        found = {"child": text(child), "parent": text(parent), "relation": text(relation)}
        self._log_at("lineage", clocks, found, about)

    def save_cursor(self, tracker: str, cursor: int) -> None:
        """Remember how far a tracker has come: the cursor of ``StatsReader.rows_after``."""
        self._put(
            "tracker_cursors", {"tracker": text(tracker), "cursor": whole(cursor), "wall_time": self._wall_time()}
        )

    def _put(self, table: str, row: dict[str, Plain]) -> None:
        self._put_logged(LoggedRow(table, row), 1)

    def _log_at(
        self, table: str, clocks: Reading, row: dict[str, Plain], about: Mapping[str, Plain] | None = None
    ) -> None:
        reading = reading_of(clocks)
        if about:
            row["about"] = as_json(about)
        self._put(table, {**self._placed(reading), **self._times(reading), **row})

    def _place(self, reading: Mapping[str, float]) -> Place:
        get = reading.get
        epoch = int(get("epochs", 0))
        return self._after_epoch, epoch, int(get("env_steps", 0)), int(get("optimizer_steps", 0))

    def _placed(self, reading: Mapping[str, float]) -> dict[str, int]:
        names = ("after_epoch", "epoch", "env_steps", "optimizer_steps")
        return dict(zip(names, self._place(reading), strict=True))

    def _times(self, reading: Mapping[str, float]) -> dict[str, float]:
        return {"seconds": float(reading.get("seconds", 0.0)), "wall_time": self._wall_time()}

    def _numbers(self, values: Mapping[str, Plain]) -> dict[str, float]:
        found: dict[str, float] = {}
        for key, value in flat(values):
            if value is not None:
                found[key] = value
            elif key not in self._warned:
                self._warned.add(key)
                log.warning(
                    "The metric %r is not a number and is not kept; log numbers, tensors or lists of them.", key
                )
        return found


def reading_of(clocks: Reading) -> Mapping[str, float]:
    """Return clocks as a mapping; the word ``epoch`` is taken for ``epochs``."""
    if isinstance(clocks, Mapping):
        return clocks if "epoch" not in clocks else {**clocks, "epochs": clocks["epoch"]}
    return clocks.reading()


def _taken(row: dict[str, Plain], names: Iterable[str]) -> dict[str, Plain]:
    return {name: row.pop(name) for name in names if name in row}
