"""Who is answered by the dashboard: whoever has the token, asks under our name, and only reads."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.dashboard.guard import Guard

HOST = "127.0.0.1:8420"
TOKEN = "a-secret_Of.32-letters"
OURS = {"host": HOST, "authorization": f"Bearer {TOKEN}"}


class Answer:
    """What came back."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.is_silent = not messages
        if messages:
            self.status: int = messages[0]["status"]
            self.headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
            self.text = b"".join(message.get("body", b"") for message in messages[1:]).decode()


async def application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"the runs"})


def ask(
    headers: dict[str, str] | list[tuple[str, str]],
    *,
    method: str = "GET",
    path: str = "/",
    query: str = "",
    kind: str = "http",
) -> Answer:
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        messages.append(message)

    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    scope = {
        "type": kind, "method": method, "path": path, "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in pairs],
    }  # fmt: skip
    guard = Guard(application, hosts=[HOST, "localhost:8420"], token=TOKEN, cookie="hookloop-8420")
    asyncio.run(guard(scope, receive, send))
    return Answer(messages)


@pytest.mark.parametrize(
    "headers",
    [
        OURS,
        {"host": "LOCALHOST:8420", "authorization": f"bearer {TOKEN}"},
        {"host": HOST, "cookie": f"other=1; hookloop-8420={TOKEN}"},
        {**OURS, "origin": f"http://{HOST}"},
    ],
)
def test_who_has_the_token_and_reads_is_answered(headers: dict[str, str]) -> None:
    assert (ask(headers).status, ask(headers).text) == (200, "the runs")
    assert ask(headers, method="HEAD").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example:8420", "127.0.0.1", "127.0.0.1:8421", "127.0.0.1:8420.evil.example", "", f"{HOST},{HOST}"]
)
def test_another_name_of_this_machine_is_refused_with_the_token_too(host: str) -> None:
    answer = ask({**OURS, "host": host})

    assert answer.status == 421
    assert "asked as 127.0.0.1:8420 or localhost:8420" in answer.text


def test_a_request_with_no_name_or_with_two_is_refused() -> None:
    assert ask({"authorization": f"Bearer {TOKEN}"}).status == 421
    assert ask([*OURS.items(), ("host", HOST)]).status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://{HOST}", "http://127.0.0.1:8421"])
def test_the_pages_of_others_are_refused(origin: str) -> None:
    assert ask({**OURS, "origin": origin}).status == 403


@given(st.sampled_from(["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND"]))
def test_nothing_but_reading_is_known(method: str) -> None:
    assert ask(OURS, method=method).status == 405


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=40).filter(lambda text: text != TOKEN))
def test_no_other_token_is_the_token(wrong: str) -> None:
    for headers in ({"authorization": f"Bearer {wrong}"}, {"cookie": f'hookloop-8420="{wrong}"'}, {"cookie": wrong}):
        if TOKEN not in wrong.strip():
            answer = ask({"host": HOST, **headers})
            assert (answer.status, "the runs" in answer.text) == (401, False)


def test_who_has_no_token_is_told_where_it_is() -> None:
    for query in ("", "token=", "token=wrong", f"tokens={TOKEN}"):
        answer = ask({"host": HOST}, query=query)
        assert answer.status == 401
        assert "hookloop dash" in answer.text


def test_the_token_of_the_address_becomes_a_cookie_and_leaves_the_address() -> None:
    for headers in ({"host": HOST}, OURS):  # the second time, too
        answer = ask(headers, path="/runs/mine", query=f"clock=epoch&token={TOKEN}&x=1")

        assert answer.status == 200
        assert 'content="0;url=/runs/mine?clock=epoch&amp;x=1"' in answer.text
        assert TOKEN not in answer.text
        assert answer.headers["set-cookie"] == f"hookloop-8420={TOKEN}; Path=/; HttpOnly; SameSite=Strict"


@given(st.text(max_size=30))
def test_the_way_on_never_leads_to_somebody_else(path: str) -> None:
    page = ask({"host": HOST}, path=f"/{path}", query=f"token={TOKEN}").text

    found = re.fullmatch(r'<!doctype html><meta http-equiv="refresh" content="0;url=(/[^"<>]*)"><link .*\n', page)
    assert found is not None
    assert not found[1].startswith(("//", "/\\"))
    assert found[1].isascii()


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_port_of_this_machine_is_somebody_else(site: str) -> None:
    assert ask({**OURS, "sec-fetch-site": site, "sec-fetch-mode": "no-cors"}).status == 403
    assert ask({**OURS, "sec-fetch-site": site}).status == 403
    assert ask({**OURS, "sec-fetch-site": site, "sec-fetch-mode": "navigate"}).status == 200  # a link that is clicked
    assert ask({**OURS, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}).status == 200


def test_every_answer_binds_the_browser() -> None:
    for answer in (ask(OURS), ask({"host": HOST}), ask({"host": "evil.example"}), ask(OURS, method="POST")):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "script-src 'self';" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_other_kinds_of_connections_are_not_answered() -> None:
    assert ask(OURS, kind="websocket").is_silent
