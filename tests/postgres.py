"""A real PostgreSQL server for tests: in a temporary folder, on a socket of its own, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS

USER = "postgres"


def binaries() -> Path | None:
    """Return the folder of the newest server that is installed."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if not found and (on_path := shutil.which("postgres")):
        found = [Path(on_path).parent]
    return max(found, key=lambda path: [int(part) for part in path.parts if part.isdigit()], default=None)


@contextmanager
def running_server() -> Iterator[str]:
    """Run a server and yield its URL; skip the test where there is none."""
    where = binaries()
    if where is None:
        pytest.skip("there is no PostgreSQL server on this machine: apt-get install postgresql")
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'hookloop[postgres]'")
    # The path of a socket has a hundred characters at most, and pytest's folders are deep.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    account = _account()
    if account is not None:
        shutil.chown(folder, account)
    server = None
    try:
        initdb = [where / "initdb", "-D", folder / "data", "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run([*initdb, "--locale=C"], check=True, capture_output=True, user=account, cwd=folder)
        options = [
            "-c",
            "listen_addresses=",
            "-k",
            str(folder),
            "-c",
            "max_connections=20",
            "-c",
            "shared_buffers=16MB",
        ]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(
                [where / "postgres", "-D", folder / "data", *options], stdout=log, stderr=log, user=account, cwd=folder
            )
        url = f"postgresql+psycopg://{USER}@/postgres?host={folder}"
        _wait_until_ready(url, folder / "log")
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # the kind of shutdown that waits for nobody
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _account() -> str | None:
    """Return the account to run as: the server refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in (USER, "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is no other account")


def _wait_until_ready(url: str, log: Path, seconds: float = PATIENCE_SECONDS) -> None:
    import psycopg

    deadline = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(url.replace("+psycopg", "")).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
            time.sleep(0.05)
        else:
            return
