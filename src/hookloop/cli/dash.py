"""``hookloop dash``: all runs in a browser, live."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from hookloop.cli.exit_codes import EXIT_DONE
from hookloop.cli.tables import note, say
from hookloop.errors import ConfigError, MissingExtraError
from hookloop.runs.folder import all_runs

DEFAULT_PORT = 8420
_PACKAGES = ("starlette", "uvicorn", "plotly", "orjson")


def dash(*, runs_dir: Path = Path("runs"), host: str = "127.0.0.1", port: int = DEFAULT_PORT) -> int:
    """Show all runs live in a browser, with their curves and games, until Ctrl-C; the runs go on.

    Args:
        runs_dir: The folder of all runs.
        host: The address to listen at; another than this machine's own is heard by others.
        port: The port; 0 takes one that is free.
    """
    if not runs_dir.is_dir():
        raise ConfigError(f"There is no folder {str(runs_dir)!r}; --runs-dir names another one.")
    if not all(map(find_spec, _PACKAGES)):
        raise MissingExtraError("The dashboard", "dashboard")
    from hookloop.dashboard.server import DashboardServer

    server = DashboardServer(runs_dir, host=host, port=port)

    def began() -> None:
        say(f"dashboard  {server.url}")
        say(f"runs       {len(all_runs(runs_dir))} in {runs_dir}; Ctrl-C leaves, and they go on")
        if not server.is_loopback:
            note("Whoever hears this network can read the pages and the token; an ssh tunnel to 127.0.0.1 is safer.")

    with suppress(KeyboardInterrupt):  # leaving is how watching ends
        server.run(began)
    return EXIT_DONE
