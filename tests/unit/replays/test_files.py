from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from hookloop.errors import ReplayError
from hookloop.replays import Replay, read_about, read_replay, write_replay
from hookloop.replays.files import decode_replay, encode_replay
from hookloop.replays.header import ITEM_BYTES, MAGIC, MOST_BYTES, PRELUDE, VERSION
from tests.unit.replays.episodes import episode

WHOLE = encode_replay(episode(boards=True, frames=True))


def same(left: Replay, right: Replay) -> bool:
    return dict(left.about) == dict(right.about) and all(
        left.arrays[name].dtype == right.arrays[name].dtype
        and left.arrays[name].shape == right.arrays[name].shape
        and left.arrays[name].tobytes() == right.arrays[name].tobytes()
        for name in {*left.arrays, *right.arrays}
    )


@settings(max_examples=30, deadline=None)
@given(
    steps=st.integers(1, 6),
    dtype=st.sampled_from(sorted(ITEM_BYTES)),
    shape=st.lists(st.integers(0, 3), max_size=3),
    about=st.dictionaries(
        st.text(max_size=8),
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    ),
    data=st.data(),
)
def test_what_is_written_is_read_bit_for_bit(
    steps: int, dtype: str, shape: list[int], about: dict[str, Any], data: st.DataObject
) -> None:
    rows = data.draw(arrays_of.arrays(np.dtype(dtype), (steps, *shape)))
    replay = Replay(about, {"rewards": np.zeros(steps), "observations": rows})

    assert same(decode_replay(encode_replay(replay)), replay)


def test_a_file_is_written_and_read_and_its_head_alone_tells_what_it_is(tmp_path: Path) -> None:
    replay = episode(frames=True, task="eval")

    write_replay(tmp_path / "one.replay", replay)

    assert same(read_replay(tmp_path / "one.replay"), replay)
    assert read_about(tmp_path / "one.replay") == dict(replay.about)


def test_frames_that_hardly_change_take_hardly_any_room() -> None:
    replay = episode(200, frames=True)

    assert len(encode_replay(replay)) < replay.arrays["frames"].nbytes / 10


@given(length=st.integers(0, len(WHOLE) - 1))
def test_a_file_that_is_cut_off_anywhere_is_refused(length: int) -> None:
    with pytest.raises(ReplayError):
        decode_replay(WHOLE[:length])


@given(place=st.integers(0, len(WHOLE) - 1), byte=st.integers(1, 255))
def test_a_file_with_any_byte_changed_is_refused(place: int, byte: int) -> None:
    changed = bytearray(WHOLE)
    changed[place] ^= byte

    with pytest.raises(ReplayError):
        decode_replay(bytes(changed))


@given(st.binary(max_size=200))
def test_anything_else_is_refused(content: bytes) -> None:
    for each in (content, MAGIC + content, WHOLE + content + b"."):
        with pytest.raises(ReplayError):
            decode_replay(each)


def forged(*blocks: Any, about: Any = None, tail: bytes = b"", header: bytes | None = None) -> bytes:
    """Return a file whose checksums fit, whatever it claims."""
    text = json.dumps({"about": about or {}, "blocks": list(blocks)}).encode() if header is None else header
    return PRELUDE.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text + tail


def block(stored: bytes = b"", **fields: Any) -> dict[str, Any]:
    claimed = {"name": "rewards", "dtype": "float32", "shape": [2], "encoding": "plain"}
    return {**claimed, "stored": len(stored), "crc32": zlib.crc32(stored), **fields}


REWARDS = zlib.compress(np.zeros(2, np.float32).tobytes())
BOMB = zlib.compress(bytes(10_000_000), 9)

HOSTILE = {
    "a block larger than memory": forged(block(shape=[2, 2**28])),
    "shapes whose product is huge": forged(block(shape=[2] + [10_000] * 7)),
    "a bomb": forged(block(BOMB), tail=BOMB),
    "a bomb of many rows": forged(
        block(REWARDS), block(BOMB, name="frames", dtype="uint8", shape=[2, 4]), tail=REWARDS + BOMB
    ),
    "less than it says": forged(block(zlib.compress(b"1")), tail=zlib.compress(b"1")),
    "something after the stream": forged(block(REWARDS + b"x"), tail=REWARDS + b"x"),
    "no zlib": forged(block(b"hello"), tail=b"hello"),
    "objects": forged(block(REWARDS, dtype="object"), tail=REWARDS),
    "a name that leads elsewhere": forged(block(REWARDS, name="../../etc"), tail=REWARDS),
    "a negative size": forged(block(REWARDS, shape=[-2]), tail=REWARDS),
    "a size that is no number": forged(block(REWARDS, shape=[True]), tail=REWARDS),
    "no axes": forged(block(REWARDS, shape=[]), tail=REWARDS),
    "two of a name": forged(block(REWARDS), block(REWARDS), tail=REWARDS * 2),
    "another encoding": forged(block(REWARDS, encoding="pickle"), tail=REWARDS),
    "a field too many": forged(block(REWARDS, extra=1), tail=REWARDS),
    "no rewards": forged(block(REWARDS, name="values"), tail=REWARDS),
    "no steps": forged(block(zlib.compress(b""), shape=[0]), tail=zlib.compress(b"")),
    "rows that do not fit": forged(
        block(REWARDS), block(REWARDS, name="actions", shape=[1, 2]), tail=REWARDS * 2
    ),
    "too many blocks": forged(*[block(REWARDS, name=f"a{k}") for k in range(65)], tail=REWARDS * 65),
    "an about that is a list": forged(header=b'{"about":[],"blocks":[]}'),
    "an about that is deep": forged(block(REWARDS), about={"a": {"b": {"c": {}}}}, tail=REWARDS),
    "NaN": forged(header=b'{"about":{"return":NaN},"blocks":[]}'),
    "a name twice": forged(header=b'{"about":{"a":1,"a":2},"blocks":[]}'),
    "no JSON": forged(header=b"\xff\xfe"),
    "nesting without end": forged(header=b"[" * 100_000),
    "an empty header": forged(header=b""),
    "a header larger than allowed": PRELUDE.pack(MAGIC, VERSION, 2**31, 0),
    "truths that are neither": forged(
        block(REWARDS), block(zlib.compress(b"\x00\x02"), name="values", dtype="bool"),
        tail=REWARDS + zlib.compress(b"\x00\x02"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused(what: str) -> None:
    with pytest.raises(ReplayError):
        decode_replay(HOSTILE[what], "evil.replay")


def test_a_later_version_is_refused_by_its_number() -> None:
    with pytest.raises(ReplayError, match="version 2 of the format; this hookloop reads version 1"):
        decode_replay(PRELUDE.pack(MAGIC, 2, 0, 0))


def test_an_episode_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (50, 40, 40, 3), dtype=np.uint8)
    replay = Replay({}, {"rewards": np.zeros(50), "frames": noise})

    with pytest.raises(ReplayError, match="record it without frames"):
        write_replay(tmp_path / "large.replay", replay, most_bytes=10_000)
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(ReplayError, match="arrays of numbers"):
        encode_replay(Replay({}, {"rewards": np.array(["a"])}))
    with pytest.raises(ReplayError, match="strict JSON"):
        encode_replay(Replay({"return": float("nan")}, {"rewards": np.zeros(1)}))
    with pytest.raises(ReplayError, match="no rewards"):
        encode_replay(Replay({}, {"values": np.zeros(1)}))
    with pytest.raises(ReplayError, match="are the most"):
        encode_replay(
            Replay({}, {"rewards": np.zeros(1), "frames": np.broadcast_to(np.zeros(1, bool), (1, MOST_BYTES + 1))})
        )


def test_no_file_and_a_folder_are_said() -> None:
    with pytest.raises(ReplayError, match="There is no replay at"):
        read_replay(Path("/"))
