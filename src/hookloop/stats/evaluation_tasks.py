"""Evaluations that processes of their own carry out: asked for by a run, claimed by a worker, done exactly once.

A task is known by its run, the checkpoint (whose id holds the hash of its content), what is played and the first seed:
to ask for it twice is to ask for it once. A worker that has claimed one has it until its lease ends; it renews the
lease while it works. One that was killed does not, and somebody else claims the task.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sqlalchemy import and_, func, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from hookloop.errors import StatsError
from hookloop.stats.batches import Batch, BatchInserts, Logged, Sequences, insert_into
from hookloop.stats.database import brief, shown, transaction, writing_engine
from hookloop.stats.log import StatsLog
from hookloop.stats.migrations import migrate
from hookloop.stats.rows import text, whole
from hookloop.stats.schema import EVALUATION_TASKS as TASKS
from hookloop.stats.schema import EVALUATIONS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

MOST_TRIES = 3
UNFINISHED = ("waiting", "claimed")


class TaskKey(NamedTuple):
    """Which evaluation it is."""

    run_id: str
    checkpoint_id: str
    suite: str
    seed: int


class Claim(NamedTuple):
    """A task that a worker has, and where its checkpoint is."""

    key: TaskKey
    uri: str
    tries: int


class EvaluationTasks:
    """The tasks in a database; any number of processes may use it at once.

    Args:
        url_or_path: What the statistics of the runs are in.
        most_tries: So many failures give a task up.
        wall_time: What time it is, in seconds since 1970; leases are compared by it.
    """

    def __init__(
        self, url_or_path: str | Path, *, most_tries: int = MOST_TRIES, wall_time: Callable[[], float] = time.time
    ) -> None:
        self._url_or_path, self._most_tries, self._wall_time = url_or_path, most_tries, wall_time
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def enqueue(self, key: TaskKey, uri: str) -> bool:
        """Ask for an evaluation; False if it was asked for before, whatever has become of it."""
        row = {**_columns(key), "state": "waiting", "uri": text(uri), "created": self._wall_time(), "tries": 0}
        with self._writing() as connection:
            statement = insert_into(connection, TASKS).values(**row).on_conflict_do_nothing()
            return connection.execute(statement).rowcount == 1

    def claim(self, worker: str, *, lease_seconds: float) -> Claim | None:
        """Take the oldest task that nobody has, for so long; None if there is none."""
        with self._writing(is_durable=False) as connection:
            now = self._wall_time()
            is_free = or_(TASKS.c.state == "waiting", and_(TASKS.c.state == "claimed", TASKS.c.lease_until < now))
            query = select(TASKS).where(is_free).order_by(TASKS.c.created, TASKS.c.checkpoint_id, TASKS.c.suite)
            for row in connection.execute(query).all():
                key = TaskKey(row.run_id, row.checkpoint_id, row.suite, int(row.seed))
                taken = {"state": "claimed", "claimed_by": worker, "lease_until": now + lease_seconds}
                # Asked again here: on a server another worker may have been quicker.
                statement = update(TASKS).where(_is(key), is_free).values(**taken, tries=TASKS.c.tries + 1)
                if connection.execute(statement).rowcount == 1:
                    return Claim(key, row.uri, int(row.tries) + 1)
        return None

    def renew(self, claim: Claim, worker: str, *, lease_seconds: float) -> bool:
        """Keep a task for longer; False if it was lost to somebody else."""
        return self._change(claim, worker, {"lease_until": self._wall_time() + lease_seconds})

    def release(self, claim: Claim, worker: str) -> bool:
        """Give a task back unfinished; the try does not count."""
        return self._change(claim, worker, {"state": "waiting", "lease_until": None, "tries": TASKS.c.tries - 1})

    def finish(self, claim: Claim, worker: str, clocks: dict[str, float], write: Callable[[StatsLog], None]) -> bool:
        """Write what was found and mark the task as done, both or neither; False if it was lost to somebody else.

        Args:
            claim: The task.
            worker: Who has it.
            clocks: The moment of training the checkpoint is from; the rows belong there, whatever has come since.
            write: Logs the rows.
        """
        logged: list[Logged] = []
        epoch = whole(clocks.get("epochs", 0))
        write(StatsLog(lambda row, _count: logged.append(row), self._wall_time, after_epoch=epoch))
        with self._writing() as connection:
            done = {"state": "done", "finished": self._wall_time(), "lease_until": None, "error": None}
            if connection.execute(update(TASKS).where(_is_of(claim, worker)).values(**done)).rowcount != 1:
                return False
            _insert_rows(connection, claim.key.run_id, logged, epoch)
        return True

    def fail(self, claim: Claim, worker: str, why: str) -> bool:
        """Put a task back to be tried again, or give it up after too many tries; True if it is given up."""
        is_given_up = claim.tries >= self._most_tries
        state = {"state": "failed", "finished": self._wall_time()} if is_given_up else {"state": "waiting"}
        self._change(claim, worker, {**state, "lease_until": None, "error": text(why)[:2000]})
        return is_given_up

    def of_run(self, run_id: str, states: Sequence[str] = UNFINISHED) -> list[tuple[TaskKey, str]]:
        """Return the tasks of a run that are in one of these states, and what went wrong in their latest try."""
        query = select(TASKS).where(TASKS.c.run_id == run_id, TASKS.c.state.in_(states)).order_by(TASKS.c.created)
        with self._writing(is_durable=False) as connection:
            rows = connection.execute(query).all()
        return [(TaskKey(row.run_id, row.checkpoint_id, row.suite, int(row.seed)), row.error or "") for row in rows]

    def _change(self, claim: Claim, worker: str, values: dict[str, Any]) -> bool:
        with self._writing() as connection:
            return connection.execute(update(TASKS).where(_is_of(claim, worker)).values(**values)).rowcount == 1

    @contextmanager
    def _writing(self, *, is_durable: bool = True) -> Generator[Connection]:
        try:
            if self._connection is None:
                self._connection = writing_engine(self._url_or_path).connect()
                migrate(self._connection)
            with transaction(self._connection, is_durable=is_durable):
                yield self._connection
        except (SQLAlchemyError, OSError) as error:
            self.close()  # a broken connection is not used again
            raise StatsError(
                f"The tasks in {shown(self._url_or_path)} cannot be read or written: {brief(error)}."
            ) from error


def _insert_rows(connection: Connection, run_id: str, logged: Sequence[Logged], epoch: int) -> None:
    mine = (EVALUATIONS.c.run_id == run_id) & (EVALUATIONS.c.after_epoch == epoch)
    used = connection.execute(select(func.max(EVALUATIONS.c.sequence)).where(mine)).scalar()
    batch, sequences = Batch(run_id), Sequences(0 if used is None else int(used) + 1)
    for row in logged:
        batch.add(row, sequences, attempt=1)
    BatchInserts(connection, run_id).write(batch)


def _columns(key: TaskKey) -> dict[str, Any]:
    return {name: text(value) if isinstance(value, str) else value for name, value in key._asdict().items()}


def _is(key: TaskKey) -> ColumnElement[bool]:
    return and_(*(TASKS.c[name] == value for name, value in _columns(key).items()))


def _is_of(claim: Claim, worker: str) -> ColumnElement[bool]:
    return and_(_is(claim.key), TASKS.c.state == "claimed", TASKS.c.claimed_by == worker)
