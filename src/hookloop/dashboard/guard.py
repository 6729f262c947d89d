"""Who may ask the dashboard, and what a browser may do with the answers.

A page of somebody else, open in the same browser, can send requests to this machine, under names that its owner
chooses. So nothing is answered without the token, under a name that is not ours, or to a method that could change
something.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from hmac import compare_digest
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

READING = ("GET", "HEAD")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Plotly writes styles of its own, and makes pictures to be saved; everything else comes from here."""
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}


class Guard:
    """Lets only those requests through to an application that may be answered.

    Args:
        app: The application.
        hosts: The names under which it is asked, with the port, such as ``127.0.0.1:8420``.
        token: The secret; in the address of the first request, and in a cookie afterwards.
        cookie: What the cookie is called.
    """

    def __init__(self, app: App, *, hosts: Iterable[str], token: str, cookie: str = "hookloop") -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._token = token
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return  # there are no other kinds here; a socket that nobody accepts is closed
        headers = _read(scope["headers"])
        refusal = self._refusal(scope["method"], headers)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if refusal is not None:
            await _answer(send, *refusal)
        elif any(name == "token" and self._is_token(value) for name, value in query):
            await self._admit(scope["path"], query, send)
        elif self._is_known(headers):
            await self._app(scope, receive, _with_headers(send))
        else:
            words = "Open the address that 'hookloop dash' has printed: it ends in the token that lets you in."
            await _answer(send, 401, words)

    def _refusal(self, method: str, headers: dict[str, list[str]]) -> tuple[int, str] | None:
        host = [name.lower() for name in headers.get("host", [])]
        if len(host) != 1 or host[0] not in self._hosts:
            return 421, f"This dashboard is asked as {' or '.join(sorted(self._hosts))}, and under no other name."
        if any(origin.lower() != f"http://{host[0]}" for origin in headers.get("origin", [])):
            return 403, "This dashboard does not answer the pages of others."
        # Another port of this machine is the same site, and gets the cookie, but not the same origin.
        is_foreign = any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", []))
        if is_foreign and headers.get("sec-fetch-mode") != ["navigate"]:
            return 403, "This dashboard does not answer the pages of others."
        if method not in READING:
            return 405, "This dashboard reads, and changes nothing: GET and HEAD are all it knows."
        return None

    def _is_known(self, headers: dict[str, list[str]]) -> bool:
        return any(self._is_token(found) for found in (*_bearers(headers), *self._cookies(headers)))

    def _cookies(self, headers: dict[str, list[str]]) -> Iterable[str]:
        for text in headers.get("cookie", []):
            try:
                found = SimpleCookie(text)
            except CookieError:
                continue
            if self._cookie in found:
                yield found[self._cookie].value

    def _is_token(self, found: str) -> bool:
        return compare_digest(found.encode(), self._token.encode())

    async def _admit(self, path: str, query: list[tuple[str, str]], send: Send) -> None:
        """Turn a token in the address into a cookie: addresses are kept in histories, and seen over shoulders.

        It is a page that leads on, and no redirect: of one that began on another site a browser would not send the
        cookie along.
        """
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # A path that begins with two slashes would be the name of somebody else.
        place = "/" + quote(path).lstrip("/") + (f"?{rest}" if rest else "")
        cookie = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
        refresh = f'<meta http-equiv="refresh" content="0;url={escape(place)}">'
        page = f'<!doctype html>{refresh}<link rel="icon" href="data:,"><title>hookloop</title>'
        headers = {b"content-type": b"text/html; charset=utf-8", b"set-cookie": cookie.encode()}
        await _answer(send, 200, page, headers)


def _read(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _bearers(headers: dict[str, list[str]]) -> Iterable[str]:
    for text in headers.get("authorization", []):
        kind, _, secret = text.partition(" ")
        if kind.lower() == "bearer":
            yield secret.strip()


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message["headers"]}
            added = {b"cache-control": b"no-store", **_HEADERS}
            message["headers"] = [
                *message["headers"], *((name, value) for name, value in added.items() if name not in own)
            ]  # fmt: skip
        await send(message)

    return send_with_headers


async def _answer(send: Send, status: int, words: str, headers: dict[bytes, bytes] | None = None) -> None:
    body = f"{words}\n".encode()
    found = {
        b"content-type": b"text/plain; charset=utf-8",
        b"content-length": str(len(body)).encode(),
        **(headers or {}),
    }
    sender = _with_headers(send)
    await sender({"type": "http.response.start", "status": status, "headers": list(found.items())})
    await sender({"type": "http.response.body", "body": body})
