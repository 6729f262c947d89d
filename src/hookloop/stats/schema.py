"""The tables, the same on SQLite and PostgreSQL, and what their columns mean.

Every row carries its run, so that one database serves one run or a whole team. A row that was measured at a moment of
training carries the clocks of that moment, and ``after_epoch``: the last epoch that had been logged when it came in.
Order is by clocks and sequence; wall time is for people to read and orders nothing.

SQLite turns NaN into NULL, so a measured value that is not finite is NULL on both databases, and ``nonfinite`` says
what it was: ``nan``, ``inf`` or ``-inf``. JSON columns are texts of strict JSON, with the same three words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, MetaData, PrimaryKeyConstraint, Table, Text
from sqlalchemy import UniqueConstraint as Unique
from sqlalchemy.types import TypeEngine

SCHEMA_VERSION = 2

METADATA = MetaData()

SCHEMA_INFO = Table(
    "schema_info",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

Described = tuple[str, type[TypeEngine[Any]], str]

PLACE: tuple[Described, ...] = (
    ("after_epoch", BigInteger, "the last epoch logged before this row"),
    ("epoch", BigInteger, "completed epochs"),
    ("env_steps", BigInteger, "completed environment steps, over all ranks"),
    ("optimizer_steps", BigInteger, "completed optimizer steps"),
)
TIMES: tuple[Described, ...] = (
    ("seconds", Double, "seconds of training, over all attempts"),
    ("wall_time", Double, "when, in seconds since 1970 UTC; for display only"),
)
SEQUENCE: Described = ("sequence", BigInteger, "counts rows with the same key at the same clocks, from 0")
NONFINITE: Described = ("nonfinite", Text, "`nan`, `inf` or `-inf` where the value is not finite, and NULL otherwise")
ABOUT: Described = ("about", Text, "everything else that was said, as JSON")
PLACE_KEY = ("run_id", "after_epoch", "epoch", "env_steps", "optimizer_steps")


def _table(name: str, columns: Iterable[Described], *, key: tuple[str, ...], may_be_null: str = "") -> Table:
    nullable = {*may_be_null.split(), "nonfinite", "about"}
    made = [
        Column(column, kind, nullable=column in nullable and column not in key, comment=text)
        for column, kind, text in (("run_id", Text, "the run"), *columns)
    ]
    return Table(name, METADATA, *made, PrimaryKeyConstraint(*key), sqlite_with_rowid=False)


RUNS = _table(
    "runs",
    (
        ("name", Text, "what people call it"),
        ("recipe", Text, "the recipe it was started from"),
        ("seed", BigInteger, "its seed"),
        ("config", Text, "its configuration, as JSON"),
        ("created", Double, "when its first attempt began, in seconds since 1970 UTC"),
        ("status", Text, "`running`, or the outcome of the latest attempt"),
        ("tags", Text, "a list of texts, as JSON"),
    ),
    key=("run_id",),
    may_be_null="recipe seed config",
)
ATTEMPTS = _table(
    "attempts",
    (
        ("attempt", BigInteger, "counts from 1"),
        ("started", Double, "in seconds since 1970 UTC"),
        ("ended", Double, "in seconds since 1970 UTC; NULL while it runs, and after a kill"),
        ("outcome", Text, "completed, stopped, interrupted or failed; killed if it could not say"),
        ("resumed_from", BigInteger, "the step of the checkpoint it went on from"),
        ("epoch", BigInteger, "completed epochs when it began"),
        ("env_steps", BigInteger, "completed environment steps when it began"),
        ("hostname", Text, "the machine"),
        ("pid", BigInteger, "the process"),
        ("versions", Text, "releases of what matters, as JSON"),
    ),
    key=("run_id", "attempt"),
    may_be_null="ended outcome resumed_from",
)
EPOCHS = _table(
    "epochs",
    (
        ("epoch", BigInteger, "completed epochs"),
        ("attempt", BigInteger, "the attempt that completed it"),
        ("env_steps", BigInteger, "completed environment steps, over all ranks"),
        ("optimizer_steps", BigInteger, "completed optimizer steps"),
        ("episodes", BigInteger, "finished episodes"),
        ("policy_version", BigInteger, "the version of the weights"),
        *TIMES,
    ),
    key=("run_id", "epoch"),
)
# The texts that every point of a curve shares stand here once: a point takes 50 bytes instead of 150.
SERIES = Table(
    "series",
    METADATA,
    Column("series_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False, comment="the run"),
    Column("key", Text, nullable=False, comment="the metric's name, such as `loss/policy`"),
    Column("hook", Text, nullable=False, comment="the hook that logged it; empty for the workload"),
    Column("event", Text, nullable=False, comment="the event at which it was logged"),
    Unique("run_id", "key", "hook", "event"),
)
POINTS = Table(
    "points",
    METADATA,
    Column("series_id", BigInteger, nullable=False, comment="the curve it belongs to"),
    *(Column(name, kind, nullable=False, comment=text) for name, kind, text in (*PLACE, SEQUENCE)),
    Column("seconds", Double, nullable=False, comment="seconds of training, over all attempts"),
    Column("value", Double, comment="what was measured, if it is finite"),
    Column("nonfinite", Text, comment=NONFINITE[2]),
    PrimaryKeyConstraint("series_id", "after_epoch", "epoch", "env_steps", "optimizer_steps", "sequence"),
    sqlite_with_rowid=False,
)
EPISODES = _table(
    "episodes",
    (
        *PLACE,
        SEQUENCE,
        ("seconds", Double, "seconds of training, over all attempts"),
        ("env_index", BigInteger, "the environment in which it was played"),
        ("return", Double, "the sum of its rewards, if it is finite"),
        NONFINITE,
        ("length", BigInteger, "its steps"),
        ("lesson", Text, "the lesson it belongs to"),
        ABOUT,
    ),
    key=(*PLACE_KEY, "sequence"),
    may_be_null="env_index return length lesson",
)
EVALUATIONS = _table(
    "evaluations",
    (
        ("name", Text, "what was evaluated"),
        *PLACE,
        SEQUENCE,
        *TIMES,
        ("score", Double, "the score that counts, if it is finite"),
        NONFINITE,
        ("scores", Text, "all scores by name, as JSON"),
        ("episodes", BigInteger, "how many episodes were played"),
        ("checkpoint", Text, "the checkpoint that was evaluated, if it was not the policy in memory"),
        ABOUT,
    ),
    key=(*PLACE_KEY, "name", "sequence"),
    may_be_null="score checkpoint",
)
CHECKPOINTS = _table(
    "checkpoints",
    (
        ("name", Text, "its name in the run"),
        *PLACE,
        *TIMES,
        ("checkpoint_id", Text, "a name that no other content can have"),
        ("uri", Text, "where it is"),
        ("kind", Text, "periodic, best, final and so on"),
        ("size_bytes", BigInteger, "its size"),
        ("metrics", Text, "the scores of exactly these weights, as JSON"),
        ABOUT,
    ),
    key=("run_id", "name"),
    may_be_null="size_bytes metrics",
)
REPLAYS = _table(
    "replays",
    (
        ("name", Text, "its name in the run"),
        *PLACE,
        *TIMES,
        ("uri", Text, "where it is"),
        ("return", Double, "the sum of its rewards, if it is finite"),
        NONFINITE,
        ("length", BigInteger, "its steps"),
        ABOUT,
    ),
    key=("run_id", "name"),
    may_be_null="return length",
)
HOOK_COSTS = _table(
    "hook_costs",
    (
        ("attempt", BigInteger, "costs are counted for each attempt anew"),
        ("hook", Text, "the hook"),
        ("event", Text, "the event"),
        ("calls", BigInteger, "calls so far"),
        ("total_ns", BigInteger, "nanoseconds of all calls so far"),
        ("max_ns", BigInteger, "nanoseconds of the longest call"),
        ("timed_calls", BigInteger, "how many of the calls were timed"),
    ),
    key=("run_id", "attempt", "hook", "event"),
)
HOOK_FAILURES = _table(
    "hook_failures",
    (
        ("attempt", BigInteger, "the attempt that reports it"),
        ("hook", Text, "the hook"),
        ("count", BigInteger, "failures so far, over all attempts"),
        ("last_error", Text, "the latest one"),
        ("last_event", Text, "the event at which it happened"),
        ("is_disabled", Boolean, "whether the hook is switched off"),
    ),
    key=("run_id", "attempt", "hook"),
)
EVENTS = _table(
    "events",
    (
        *PLACE,
        SEQUENCE,
        *TIMES,
        ("who", Text, "the hook, command or person"),
        ("what", Text, "what happened"),
        ("why", Text, "the reason"),
        ABOUT,
    ),
    key=(*PLACE_KEY, "sequence"),
)
LINEAGE = _table(
    "lineage",
    (
        ("child", Text, "a checkpoint, run or file"),
        ("parent", Text, "what it was made from"),
        ("relation", Text, "resumed, forked, exported and so on"),
        *PLACE,
        *TIMES,
        ABOUT,
    ),
    key=("run_id", "child", "parent", "relation"),
)
GAMES = _table(
    "games",
    (
        *PLACE,
        SEQUENCE,
        *TIMES,
        ("players", Text, "who sat where, as a JSON list in the order of the seats"),
        ("winner", Text, "the player who won; NULL for a draw"),
        ("moves", BigInteger, "how many moves were made"),
        ("opening", Text, "how it began"),
        ("replay", Text, "where its record is"),
        ABOUT,
    ),
    key=(*PLACE_KEY, "sequence"),
    may_be_null="winner moves opening replay",
)
RATINGS = _table(
    "ratings",
    (
        ("player", Text, "whose rating it is"),
        *PLACE,
        SEQUENCE,
        *TIMES,
        ("rating", Double, "the rating, if it is finite"),
        NONFINITE,
        ("deviation", Double, "its uncertainty"),
        ("games", BigInteger, "how many games it rests on"),
    ),
    key=(*PLACE_KEY, "player", "sequence"),
    may_be_null="rating deviation games",
)
TRACKER_CURSORS = _table(
    "tracker_cursors",
    (
        ("tracker", Text, "the tracker"),
        ("cursor", BigInteger, "the last epoch it has been given"),
        ("wall_time", Double, "when, in seconds since 1970 UTC; for display only"),
    ),
    key=("run_id", "tracker"),
)

EVALUATION_TASKS = _table(
    "evaluation_tasks",
    (
        ("checkpoint_id", Text, "the checkpoint to evaluate, by a name that no other content can have"),
        ("suite", Text, "what to play: the name of a simulation, `training` or `all`"),
        ("seed", BigInteger, "of the first episode"),
        ("state", Text, "`waiting`, `claimed`, `done` or `failed`"),
        ("uri", Text, "where the checkpoint is"),
        ("created", Double, "when it was asked for, in seconds since 1970 UTC"),
        ("claimed_by", Text, "the worker that has it, or had it last"),
        ("lease_until", Double, "when another worker may take it, in seconds since 1970 UTC"),
        ("tries", BigInteger, "how often it was claimed"),
        ("finished", Double, "when it was done or given up, in seconds since 1970 UTC"),
        ("error", Text, "what went wrong in the latest try that failed"),
    ),
    key=("run_id", "checkpoint_id", "suite", "seed"),
    may_be_null="claimed_by lease_until finished error",
)

# What a resume moves aside where it is beyond the checkpoint. The rest belongs to the attempt or the whole run.
CLOCKED = (EPOCHS, POINTS, EPISODES, EVALUATIONS, CHECKPOINTS, REPLAYS, EVENTS, LINEAGE, GAMES, RATINGS)


def _archive(table: Table) -> Table:
    """Return the table to which a resume moves rows: the same columns, and which attempt gave them up."""
    columns = [Column(each.name, each.type, nullable=each.nullable, comment=each.comment) for each in table.columns]
    by = Column("superseded_by", BigInteger, nullable=False, comment="the attempt that went on from before it")
    key = PrimaryKeyConstraint("superseded_by", *(each.name for each in table.primary_key.columns))
    return Table(f"superseded_{table.name}", METADATA, by, *columns, key, sqlite_with_rowid=False)


SUPERSEDED = {table.name: _archive(table) for table in CLOCKED}

METRICS_VIEW = """
CREATE VIEW metrics AS
SELECT series.run_id, points.epoch, points.env_steps, points.optimizer_steps, points.seconds, series.hook,
       series.event, series.key, points.value, points.nonfinite, points.after_epoch, points.sequence
FROM points JOIN series ON series.series_id = points.series_id
"""
