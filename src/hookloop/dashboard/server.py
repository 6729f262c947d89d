"""The server of the dashboard: it listens where only this machine hears it, unless told otherwise."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Collection
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import uvicorn

from hookloop.dashboard.app import make_app
from hookloop.dashboard.guard import Guard
from hookloop.dashboard.looking import Looks
from hookloop.errors import ConfigError

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_MOST_CONNECTIONS = 128
_MOST_PORT = 65535
_USUAL_PORT = 80
_GRACE_SECONDS = 3
_TOKEN_BYTES = 24


class DashboardServer:
    """Serves the runs of a folder to browsers, until it is told to stop.

    Args:
        runs_dir: The folder of all runs.
        host: The address to listen at, which is also the name under which it is asked.
        port: The port; 0 takes one that is free.
    """

    def __init__(self, runs_dir: Path, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        name = f"[{host}]" if ":" in host else host
        self.is_loopback = _address_of(self._socket).is_loopback
        """Whether it is heard on this machine alone."""
        names = {name, *_LOOPBACK} if self.is_loopback else {name}
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.url = f"http://{name}:{self.port}/?token={token}"
        """Where to look, with the token in it."""
        self._looks = Looks(runs_dir)
        app = make_app(self._looks, is_ending=lambda: self._server.should_exit)
        guard = Guard(app, hosts=hosts_of(names, self.port), token=token, cookie=f"hookloop-{self.port}")
        self._server = uvicorn.Server(
            uvicorn.Config(
                guard,
                log_level="warning",
                access_log=False,  # it would hold the token
                server_header=False,
                lifespan="off",
                ws="none",
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    def run(self, began: Callable[[], None] = lambda: None) -> None:
        """Serve until a signal ends it, or ``stop`` is called."""
        try:
            began()
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._looks.close()

    def stop(self) -> None:
        """Let the server end; another thread may ask for it."""
        self._server.should_exit = True


def hosts_of(names: Collection[str], port: int) -> list[str]:
    """Return how browsers call a server in their requests; the usual port they leave out."""
    return [f"{name}:{port}" for name in names] + (list(names) if port == _USUAL_PORT else [])


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _MOST_PORT:
        raise ConfigError(f"--port must be from 0 to {_MOST_PORT}, got {port}; 0 takes a port that is free.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(
            f"Cannot listen at {host}, port {port}: {error}. --port 0 takes a port that is free."
        ) from error
    if _address_of(made).is_unspecified:  # judged by where it listens: there are many ways to write that
        made.close()
        raise ConfigError(
            f"--host {host!r} would be every address of this machine; name the one that browsers will ask, "
            "such as --host 192.168.1.5: requests under other names are refused."
        )
    return made


def _address_of(listening: socket.socket) -> IPv4Address | IPv6Address:
    return ip_address(listening.getsockname()[0])
