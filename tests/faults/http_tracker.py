"""A tracker that posts to a server, and the server: a real process, which can be told to misbehave.

The server writes down what it is sent, in order, and refuses nothing; that nothing comes twice is for others to see to.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from hookloop.trackers import EpochRows, TrackedRun
from tests.faults.processes import Child, fork
from tests.waiting import wait_until

ANSWER_SECONDS = 0.3


class HttpTracker:
    """Posts epochs, and asks the server how far it has come."""

    def __init__(self, folder: Path, url: str, kills_at: int = 0) -> None:
        self._url = url
        self._kills_at = kills_at
        self._sends = 0

    def open(self, run: TrackedRun) -> int:
        with urlopen(f"{self._url}/cursor", timeout=ANSWER_SECONDS) as answer:
            return int(answer.read())

    def log(self, epochs: Sequence[EpochRows]) -> None:
        body = json.dumps([{"cursor": epoch.cursor, "rows": list(map(dict, epoch.rows))} for epoch in epochs]).encode()
        with urlopen(Request(f"{self._url}/log", body), timeout=ANSWER_SECONDS) as answer:
            answer.read()
        self._sends += 1
        if self._sends == self._kills_at:
            os.kill(os.getpid(), 9)  # the server has it, and the cursor is not saved

    def finish(self, outcome: str) -> None:
        pass

    def close(self) -> None:
        pass


class Server:
    """The server's process; it may be killed and started again, and keeps its port."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._process: Child | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.misbehave("not at all")

    def start(self) -> None:
        """Start, and wait until it answers."""
        self._process = fork(lambda: _serve(self._folder, self.port), self._folder / "output")
        wait_until(self._answers, "the server does not start")

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()

    def misbehave(self, how: str) -> None:
        """From now on: hangs, errs, loses answers to what it is told, or not at all."""
        scratch = self._folder / "how.new"
        scratch.write_text(how)
        os.replace(scratch, self._folder / "how")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 0.2):
                return True
        except OSError:
            return False

    def received(self) -> list[dict[str, Any]]:
        """Return all points it was sent."""
        return [row for epoch in _epochs(self._folder) for row in epoch["rows"]]


def _epochs(folder: Path) -> list[dict[str, Any]]:
    file = folder / "received"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _serve(folder: Path, port: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            epochs = _epochs(folder)
            self._answer(str(epochs[-1]["cursor"] if epochs else 0).encode())

        def do_POST(self) -> None:
            epochs = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if (folder / "how").read_text() in ("not at all", "loses answers"):
                lines = "".join(json.dumps(epoch) + "\n" for epoch in epochs)
                with (folder / "received").open("a") as file:
                    file.write(lines)
            self._answer(b"thanks")

        def _answer(self, body: bytes) -> None:
            how = (folder / "how").read_text()
            while (folder / "how").read_text() == "hangs":
                time.sleep(0.01)
            if how == "hangs" or (how == "loses answers" and self.command == "POST"):
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(500 if how == "errs" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Quiet(HTTPServer):
        """Takes one after another, in the order in which they come, also what its sender has given up waiting for."""

        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    Quiet(("127.0.0.1", port), Handler).serve_forever()
