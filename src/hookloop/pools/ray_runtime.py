"""The connection of this process to Ray: one for all pools, and bounded where Ray is started for it.

Ray allows one connection for each process, so pools share it. When the last one lets go of it, it is closed, and Ray's
own processes end if they were started for it. A cluster that ran before runs on.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

import psutil
import ray

from hookloop.pools.errors import NoWorkersError, PoolUsageError
from hookloop.pools.measuring import usable_cores

HERE = "ray"
"""Ray on this machine, unless the variable RAY_ADDRESS names a cluster, as it does within a Ray job."""
OBJECT_STORE_BYTES = 512 << 20
LOG_FILE_BYTES = 10 << 20
LONGEST_FOLDER = 40  # Ray's sockets are some 60 characters below it, and the path of a socket may have 107
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ROTATION_MAX_BYTES": str(LOG_FILE_BYTES),
    "RAY_ROTATION_BACKUP_COUNT": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""What Ray is told where it is started here, unless the environment says otherwise already."""


class RayRuntime:
    """An open connection.

    Args:
        cluster: ``ray``, or the address ``ray://HOST:PORT`` of a cluster.
    """

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.users = 0
        self._folder: str | None = None
        self._processes: list[psutil.Process] = []
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            atexit.register(self.end)  # after Ray's own, and so done before it
            with _signals_kept():
                self._connect(os.environ.get("RAY_ADDRESS") if cluster == HERE else cluster)

    @property
    def is_here(self) -> bool:
        """Tell whether Ray was started on this machine, for this process."""
        return self._folder is not None

    def end(self) -> None:
        """Close the connection, and end Ray's processes if they were started for it."""
        if not self._is_ours:
            return
        self._is_ours = False
        atexit.unregister(self.end)
        family = [member for process in self._processes for member in [process, *_children(process)]]
        with warnings.catch_warnings():
            # Ray lets go of the processes it has ended without asking how they ended.
            warnings.filterwarnings("ignore", "subprocess .* is still running", ResourceWarning)
            ray.shutdown()
            gc.collect()
        _end_processes(family)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _connect(self, address: str | None) -> None:
        if not address:
            self._start()
            return
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.WARNING)
        except ConnectionError as error:
            raise NoWorkersError(
                f"No Ray cluster answers at {address!r} ({_gist(error)}). See that it runs ('ray status' on its head), "
                "that its port is open from here, and that its token is here, if it wants one (RAY_AUTH_MODE=token)."
            ) from error

    def _start(self) -> None:
        self._folder = _make_folder()
        with _environment(ENVIRONMENT):
            ray.init(
                "local",
                num_cpus=usable_cores(),
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _temp_dir=self._folder,
            )
        self._processes = children_with(self._folder)


def children_with(word: str) -> list[psutil.Process]:
    """Return the children of this process whose command has a word in it; those that have ended are nobody's."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # also of one that has ended and that nobody has waited for yet
            if any(word in each for each in child.cmdline()):
                found.append(child)
    return found


_open: RayRuntime | None = None


def connect(cluster: str) -> RayRuntime:
    """Return the connection of this process to a cluster; ``disconnect`` when it is not needed any more."""
    global _open
    if _open is not None and _open.cluster != cluster:
        raise PoolUsageError(
            f"This process works with the cluster {_open.cluster!r}, and Ray allows one at a time; close the pools "
            f"that use it before you open one at {cluster!r}."
        )
    if _open is None:
        _open = RayRuntime(cluster)
    _open.users += 1
    return _open


def disconnect(runtime: RayRuntime) -> None:
    """Let go of a connection; the last one ends it."""
    global _open
    runtime.users -= 1
    if not runtime.users:
        _open = None
        runtime.end()


def _gist(error: ConnectionError) -> str:
    """Return the lines in which Ray says what is wrong, of what may be a traceback of the head's."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith((" ", "Traceback", ")"))]
    return " ".join(lines)[:300]


def _make_folder() -> str:
    usual = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="ray-", dir=usual if len(usual) <= LONGEST_FOLDER else "/tmp")


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _end_processes(processes: list[psutil.Process]) -> None:
    _, left = psutil.wait_procs(processes, timeout=2.0)
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=2.0)


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Generator[None]:
    """Set these variables where they are not set, for a while."""
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _signals_kept() -> Generator[None]:
    """Undo what Ray does to the handling of SIGTERM: a run ends by its own rules."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
