"""The pages and what they ask for: everything is read, and nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import NamedTuple

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hookloop.dashboard.looking import Looks
from hookloop.errors import HookloopError, UnknownNameError

LOOK_SECONDS = 1.0
"""Between two looks at a run that somebody watches."""
_DAY = {"cache-control": "private, max-age=86400"}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class _Asset(NamedTuple):
    package: str
    path: str


# What is not here is not served, whatever is asked for.
_ASSETS = {
    "page.css": _Asset("hookloop.charts", "page.css"),
    "charts.js": _Asset("hookloop.charts", "draw.js"),
    "board.css": _Asset("hookloop.boards", "board.css"),
    "board.js": _Asset("hookloop.boards", "board.js"),
    "plotly.js": _Asset("plotly", "package_data/plotly.min.js"),
    **{
        name: _Asset("hookloop.dashboard", f"assets/{name}")
        for name in ("dash.css", "dash.js", "icon.svg", "runs.html", "runs.js", "run.html", "run.js", "game.js")
    },
}


def make_app(looks: Looks, *, is_ending: Callable[[], bool] = lambda: False) -> Starlette:
    """Return the application, without a guard.

    Args:
        looks: What is known of the runs.
        is_ending: Says that the server is to stop: streams end then, which otherwise would not.
    """

    def page(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(_: Request) -> Response:
            return _file(name)

        return answer

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        return _fault(404, f"There is no file {name!r} here.") if name not in _ASSETS else _file(name)

    async def runs(_: Request) -> Response:
        return _json(await run_in_threadpool(looks.runs))

    async def view(request: Request) -> Response:
        return _json(await run_in_threadpool(looks.view, request.path_params["run"]))

    async def curves(request: Request) -> Response:
        asked = {name: request.query_params.get(name, "") for name in ("clock", "group")}
        return _json(await run_in_threadpool(looks.curves, request.path_params["run"], **asked))

    async def live(request: Request) -> Response:
        run = request.path_params["run"]
        first = await run_in_threadpool(looks.view, run)  # a run that is not there is refused as anywhere else
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(_views(looks, run, first, is_ending), media_type="text/event-stream")

    return Starlette(
        routes=[
            Route("/", page("runs.html")),
            Route("/runs/{run}", page("run.html")),
            Route("/assets/{name}", asset),
            Route("/api/runs", runs),
            Route("/api/runs/{run}", view),
            Route("/api/runs/{run}/curves", curves),
            Route("/api/runs/{run}/live", live),
        ],
        exception_handlers={UnknownNameError: _not_found, HookloopError: _not_readable, OSError: _not_readable},
    )


async def _views(looks: Looks, run: str, first: bytes, is_ending: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield a run each time it has changed, as server-sent events."""
    found, sent = first, b""
    while not is_ending():
        # Silence would look the same as a server that is gone, and one who has left is noticed only by sending.
        yield b"event: same\ndata: 1\n\n" if found == sent else b"data: " + found + b"\n\n"
        sent = found
        await asyncio.sleep(LOOK_SECONDS)
        try:
            found = await run_in_threadpool(looks.view, run)
        except (HookloopError, OSError) as error:
            yield b"event: fault\ndata: " + orjson.dumps({"fault": _words(error)}) + b"\n\n"
            return


def _file(name: str) -> Response:
    kind = _TYPES[PurePath(name).suffix]
    # Plotly alone is large, and changes with its release only.
    return Response(_content(name), media_type=kind, headers=_DAY if name == "plotly.js" else None)


@cache
def _content(name: str) -> bytes:
    package, path = _ASSETS[name]
    return files(package).joinpath(*path.split("/")).read_bytes()


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _fault(status: int, words: str) -> Response:
    return Response(orjson.dumps({"fault": words}), status_code=status, media_type="application/json")


def _not_found(_: Request, error: Exception) -> Response:
    return _fault(404, _words(error))


def _not_readable(_: Request, error: Exception) -> Response:
    return _fault(409, _words(error))


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, HookloopError):
        return f"The run cannot be read: {error.strerror or error}."
    return str(error)
