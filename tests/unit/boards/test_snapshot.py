"""Snapshots of games: what was written is read as it was, and whatever else is in the file is refused with a reason."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookloop.boards import (
    Board,
    GameSnapshot,
    GameView,
    Hand,
    Move,
    Square,
    board_text,
    read_snapshot,
    snapshot_bytes,
    view_as_plain,
)
from hookloop.boards.snapshot import MOST_BYTES, plain_as_snapshot, snapshot_as_plain, snapshot_from_bytes
from hookloop.errors import SnapshotError

PLAIN = Any

counts = st.integers(0, 2**53)
seats = st.integers(0, 1)


def shown(most: int) -> st.SearchStrategy[str]:
    return st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=most)


def squares(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Square]:
    return st.builds(Square, texts, texts, st.none() | seats)


@st.composite
def boards(draw: st.DrawFn, texts: st.SearchStrategy[str], lines: st.SearchStrategy[str]) -> Board:
    height, width = draw(st.integers(0, 4)), draw(st.integers(1, 4))
    row = st.tuples(*[squares(texts)] * width)
    rows = draw(st.tuples(*[row] * height))
    pieces = st.lists(st.tuples(squares(texts), counts), max_size=3).map(tuple)
    places = [(row, column) for row in range(height) for column in range(width)]
    return Board(
        rows,
        draw(st.sampled_from([(), tuple("abcd"[:width])])) if height else (),
        draw(st.sampled_from([(), tuple("1234"[:height])])),
        frozenset(draw(st.lists(st.sampled_from(places), max_size=3))) if places else frozenset(),
        draw(st.sampled_from([(), (Hand(0, draw(pieces)), Hand(1, draw(pieces)))])),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(lines),
    )


def snapshots(texts: st.SearchStrategy[str], lines: st.SearchStrategy[str]) -> st.SearchStrategy[GameSnapshot]:
    view = st.builds(
        GameView,
        game=texts,
        board=boards(texts, lines),
        seats=st.tuples(texts, texts),
        moves=st.lists(st.builds(Move, st.integers(1, 2**53), seats, texts), max_size=4).map(tuple),
        tally=st.dictionaries(texts, counts, max_size=4),
        buffered=st.none() | st.tuples(counts, counts),
    )
    return st.builds(GameSnapshot, view=view, wall_time=st.floats(0, 1e11), status=texts, env_steps=counts)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)

ONE = GameSnapshot(
    view=GameView(
        game="connect_four",
        board=Board(((Square("X", "●", 0), Square(".", "·")),), ("0", "1"), (), frozenset({(0, 0)})),
        moves=(Move(1, 0, "x0"),),
        tally={"draws": 2},
        buffered=(3, 8),
    ),
    wall_time=1_800_000_000.25,
    env_steps=640,
)

HELD = replace(
    ONE, view=replace(ONE.view, board=replace(ONE.view.board, hands=(Hand(0, ((Square("P", "歩", 0), 2),)), Hand(1))))
)


@given(snapshots(shown(8), shown(40) | st.just("a b\n\nc\n")))
@example(ONE)
def test_what_was_written_is_read_as_it_was(snapshot: GameSnapshot) -> None:
    assert snapshot_from_bytes(snapshot_bytes(snapshot)) == snapshot


@given(snapshots(st.text(), st.text()))
def test_whatever_a_library_writes_can_be_read_and_steers_no_terminal(snapshot: GameSnapshot) -> None:
    seen = snapshot_from_bytes(snapshot_bytes(snapshot))

    assert len(seen.view.moves) == len(snapshot.view.moves)
    assert seen.view.game.isprintable()
    assert board_text(seen.view.board, names=seen.view.seats).replace("\n", "").isprintable()


@given(st.lists(st.integers(0, 20), max_size=6), plain)
def test_any_other_value_anywhere_is_read_or_refused_and_never_breaks_the_reader(keys: list[int], value: PLAIN) -> None:
    found, complaint = snapshot_as_plain(HELD), ""
    change(found, keys, value)

    try:
        seen = plain_as_snapshot(found)
    except SnapshotError as error:
        complaint = str(error)
    else:  # what is let in can be drawn
        board_text(seen.view.board, names=seen.view.seats)

    assert complaint.isprintable()


def change(found: PLAIN, keys: list[int], value: PLAIN) -> None:
    """Put a value where the keys lead."""
    names = list(found) if isinstance(found, dict) else list(range(len(found)))
    if not names:
        return
    name = names[keys[0] % len(names)] if keys else names[0]
    if len(keys) > 1 and isinstance(found[name], dict | list) and found[name]:
        change(found[name], keys[1:], value)
    else:
        found[name] = value


@given(plain)
def test_arbitrary_json_is_refused_with_a_reason(found: PLAIN) -> None:
    with pytest.raises(SnapshotError):
        plain_as_snapshot(found)


@given(st.binary() | st.text().map(str.encode))
@example(b"[" * 100_000)
@example(b"1" * 10_000)
@example(b'{"version": 1e999}')
@example(b'{"version": NaN}')
@example(b'{"version": true}')
def test_arbitrary_bytes_are_refused_with_a_reason(content: bytes) -> None:
    with pytest.raises(SnapshotError):
        snapshot_from_bytes(content)


def changed(**board: PLAIN) -> PLAIN:
    found = snapshot_as_plain(ONE)
    found["view"]["board"].update(board)
    return found


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ({}, "its version should be a whole number from 1"),
        ([], "its version should be a whole number from 1"),
        ({"version": 2}, r"it is from a newer hookloop \(version 2; this one reads 1\)"),
        ({"version": 1}, "it has no view"),
        ({**snapshot_as_plain(ONE), "wall_time": float("nan")}, "wall_time should be a number"),
        ({**snapshot_as_plain(ONE), "env_steps": True}, "env_steps should be a whole number"),
        ({**snapshot_as_plain(ONE), "status": "\x1b[2J"}, "status should be a text of at most 40 letters, all of them"),
        ({**snapshot_as_plain(ONE), "view": {"game": "go"}}, "view has no board"),
        (changed(text="a\x1b]0;owned\x07"), r"view.board.text should be .* got 'a\\x1b\]0;owned\\x07'"),
        (changed(text="a\u202eb"), "view.board.text should be a text"),
        (changed(text="a\rb"), "view.board.text should be a text"),
        (changed(text="x" * 20_001), "at most 20000 letters"),
        (changed(rows=[[]]), r"view.board.rows\[0\] should be a list of 1 to 64"),
        (changed(rows=[[{"letters": "x" * 9, "symbol": "x"}]]), r"view.board.rows\[0\]\[0\].letters should be"),
        (changed(rows=[[{"letters": "x", "symbol": "x", "seat": 2}]]), r"rows\[0\]\[0\].seat should be"),
        (changed(rows=[[{"letters": "x", "symbol": "x"}]] * 65), "view.board.rows should be a list of 0 to 64"),
        (changed(ranks=["1", "2"]), "it has 1 rows, and names for 2"),
        (changed(files=["1"]), "it has 2 columns, and names for 1"),
        (changed(last=[[1, 0]]), "its last move lies outside"),
        (changed(last=[[0, -1]]), r"view.board.last\[0\]\[1\] should be"),
        (changed(hands=[{"seat": 1}]), "its hands are not those of the first and the second player"),
        (changed(is_slanted=1), "view.board.is_slanted should be true or false"),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(found: PLAIN, complaint: str) -> None:
    with pytest.raises(SnapshotError, match=complaint):
        plain_as_snapshot(found)


def test_names_of_later_are_left_out_and_what_is_missing_has_its_default() -> None:
    found = snapshot_as_plain(ONE)
    found["view"]["weather"] = "\x1b[2J"
    del found["view"]["tally"], found["env_steps"]

    assert plain_as_snapshot(found) == replace(ONE, env_steps=0, view=replace(ONE.view, tally={}))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (ONE, snapshot_as_plain(ONE)),
        (ONE.view, view_as_plain(ONE.view)),
        (ONE.view.board, view_as_plain(ONE.view)["board"]),
        (ONE.view.moves[0], view_as_plain(ONE.view)["moves"][0]),
    ],
    ids=["snapshot", "view", "board", "move"],
)
def test_every_field_is_written(value: PLAIN, found: dict[str, PLAIN]) -> None:
    assert set(found) - {"version"} == {each.name for each in fields(value)}


def test_a_file_is_one_line_of_json_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "game.json").write_bytes(snapshot_bytes(ONE))

    (line,) = (tmp_path / "game.json").read_text(encoding="utf-8").splitlines()

    assert json.loads(line)["view"]["board"]["rows"][0][0] == {"letters": "X", "symbol": "●", "seat": 0}
    assert read_snapshot(tmp_path / "game.json") == ONE


def test_what_is_no_file_is_not_waited_for_and_a_vast_one_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "vast").write_bytes(b" " * (MOST_BYTES + 1))

    for name in ("pipe", "none", "."):
        with pytest.raises(FileNotFoundError):
            read_snapshot(tmp_path / name)
    with pytest.raises(SnapshotError, match="larger than"):
        read_snapshot(tmp_path / "vast")
