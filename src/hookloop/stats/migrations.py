"""Brings a database to this release's schema: forward only, in one transaction, never from a newer one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlalchemy import inspect, select, update

from hookloop.errors import StatsSchemaError
from hookloop.stats.schema import METADATA, METRICS_VIEW, SCHEMA_INFO, SCHEMA_VERSION

if TYPE_CHECKING:
    from sqlalchemy import Connection

Migration = Callable[["Connection"], None]

_EVALUATION_TASKS = """
CREATE TABLE evaluation_tasks (
    run_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL, suite TEXT NOT NULL, seed BIGINT NOT NULL,
    state TEXT NOT NULL, uri TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, claimed_by TEXT,
    lease_until DOUBLE PRECISION, tries BIGINT NOT NULL, finished DOUBLE PRECISION, error TEXT,
    PRIMARY KEY (run_id, checkpoint_id, suite, seed)
)
"""


def _add_evaluation_tasks(connection: Connection) -> None:
    without_rowid = " WITHOUT ROWID" if connection.dialect.name == "sqlite" else ""
    connection.exec_driver_sql(_EVALUATION_TASKS + without_rowid)


# What leads from a version to the next one. A step names its tables and columns in SQL of its own and never uses
# schema.py, which describes the newest version only.
MIGRATIONS: Mapping[int, Migration] = {1: _add_evaluation_tasks}

_LOCK = 0x686F6F6B  # "hook": the advisory lock under which a PostgreSQL database is brought up to date


def stored_version(connection: Connection) -> int | None:
    """Return the version of the schema in a database; None where there is none."""
    if not inspect(connection).has_table(SCHEMA_INFO.name):
        return None
    found = connection.execute(select(SCHEMA_INFO.c.value).where(SCHEMA_INFO.c.name == "version")).scalar()
    return None if found is None else int(found)


def refuse_newer(version: int, *, newest: int = SCHEMA_VERSION) -> None:
    """Refuse a schema that a later release has written."""
    if version > newest:
        raise StatsSchemaError(
            f"The statistics database has schema version {version}; this hookloop knows versions up to {newest}. "
            "Upgrade hookloop, or give this run a database of its own."
        )


def migrate(
    connection: Connection, *, steps: Mapping[int, Migration] = MIGRATIONS, newest: int = SCHEMA_VERSION
) -> None:
    """Create the schema, or bring it to ``newest``; all of it or, if a step fails, nothing."""
    with connection.begin():
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        version = stored_version(connection)
        if version is None:
            _create(connection)
            version = SCHEMA_VERSION
        refuse_newer(version, newest=newest)
        for older in range(version, newest):
            if older not in steps:
                raise StatsSchemaError(
                    f"There is no way from schema version {older} to {older + 1}; this is a mistake in hookloop."
                )
            steps[older](connection)
        if version != newest:
            connection.execute(update(SCHEMA_INFO).where(SCHEMA_INFO.c.name == "version").values(value=newest))


def _create(connection: Connection) -> None:
    # A table of the same name that is somebody else's must be an error, not be taken for ours.
    METADATA.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(METRICS_VIEW)
    connection.execute(SCHEMA_INFO.insert().values(name="version", value=SCHEMA_VERSION))
    connection.execute(SCHEMA_INFO.insert().values(name="flushes", value=0))
