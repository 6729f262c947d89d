"""A manifest is believed only if it is what was written, to the last letter, and means what it should."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from hookloop.checkpoints.manifest import FileEntry, Manifest
from hookloop.errors import DamagedCheckpointError

SHA = "0" * 64


def manifest(**changes: Any) -> Manifest:
    sound = Manifest(
        run_id="run", name="step-000000000012", step=12, clock="epochs", clocks={"epochs": 12, "seconds": 1.5},
        attempt=1, parent=None, kind="periodic", created="2026-01-01", exactness="bit-exact", inexact_because="",
        environment={"torch": "2"}, config_sha256="", metrics={"return/mean": 1.25}, metadata={"a": [1, {"b": None}]},
        files={"state.json": FileEntry(2, SHA)},
    )  # fmt: skip
    return replace(sound, **changes)


def signed(body: dict[str, Any]) -> bytes:
    """Return a manifest whose hash fits, whatever stands in it."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return (json.dumps({**body, "sha256": digest}, indent=1) + "\n").encode()


def test_a_manifest_comes_back_as_it_was() -> None:
    sound = manifest()

    read = Manifest.decode(sound.encode(), "file")

    assert read == sound
    assert read.sha256 == sound.sha256
    assert (read.epochs, read.total_bytes) == (12, 2)


def test_its_hash_stands_for_everything_in_it() -> None:
    others = [manifest(metrics={}), manifest(files={"state.json": FileEntry(3, SHA)}), manifest(run_id="other")]

    assert len({each.sha256 for each in (manifest(), *others)}) == 4


def test_every_flipped_bit_is_found() -> None:
    content = manifest(metrics={"loss": 1e-07}, metadata={"note": "caf\u00e9"}).encode()

    for offset in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[offset] ^= 1 << bit
            with pytest.raises(DamagedCheckpointError):
                Manifest.decode(bytes(changed), "file")


@pytest.mark.parametrize("length", [0, 1, 50, 300, -1, -2])
def test_a_part_of_a_manifest_is_none(length: int) -> None:
    with pytest.raises(DamagedCheckpointError):
        Manifest.decode(manifest().encode()[:length], "file")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"},
        {"format_version": 2},
        {"format_version": 1.0},
        {"format_version": True},
        {"format_version": None},
        {"run_id": 3},
        {"run_id": "\x1b[31mred"},
        {"name": None},
        {"name": "../../step-000000000012"},
        {"name": "step-000000000013"},
        {"name": "step-000000000012-final"},
        {"step": "12"},
        {"step": 12.0},
        {"step": True},
        {"step": -12},
        {"step": 10**12},
        {"clocks": []},
        {"clocks": {"epochs": "12"}},
        {"clocks": {"epochs": None}},
        {"clocks": {"epochs": 10**400}},
        {"clocks": {"epochs": True}},
        {"attempt": None},
        {"parent": 3},
        {"kind": "finest"},
        {"kind": ["final"]},
        {"exactness": "\ud800"},
        {"metrics": {"return/mean": "1"}},
        {"metrics": {"return/mean": [1]}},
        {"metrics": 1},
        {"metadata": None},
        {"environment": "linux"},
        {"more": 1},
        {"files": []},
        {"files": {"../state.json": {"bytes": 2, "sha256": SHA}}},
        {"files": {"/etc/passwd": {"bytes": 2, "sha256": SHA}}},
        {"files": {"a\0b": {"bytes": 2, "sha256": SHA}}},
        {"files": {"stat\u0435.json": {"bytes": 2, "sha256": SHA}}},
        {"files": {"": {"bytes": 2, "sha256": SHA}}},
        {"files": {".hidden": {"bytes": 2, "sha256": SHA}}},
        {"files": {"MANIFEST.json": {"bytes": 2, "sha256": SHA}}},
        {"files": {"a" * 101: {"bytes": 2, "sha256": SHA}}},
        {"files": {"a": {"bytes": -1, "sha256": SHA}}},
        {"files": {"a": {"bytes": 2.0, "sha256": SHA}}},
        {"files": {"a": {"bytes": True, "sha256": SHA}}},
        {"files": {"a": {"bytes": 2, "sha256": SHA[1:]}}},
        {"files": {"a": {"bytes": 2, "sha256": "G" * 64}}},
        {"files": {"a": {"bytes": 2, "sha256": None}}},
        {"files": {"a": {"bytes": 2}}},
        {"files": {"a": {"bytes": 2, "sha256": SHA, "mode": 1}}},
        {"files": {"a": [2, SHA]}},
        {"files": {f"file-{number}": {"bytes": 0, "sha256": SHA} for number in range(101)}},
    ],
    ids=lambda changes: ascii(changes)[:60],
)
def test_a_manifest_that_means_nothing_is_refused_though_its_hash_fits(changes: dict[str, Any]) -> None:
    with pytest.raises(DamagedCheckpointError, match=r"^the file "):
        Manifest.decode(signed({**asdict(manifest()), **changes}), "the file")


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04\x95.",
        b"[]",
        b"null",
        b"{}",
        b'{"step": NaN}',
        b'{"step": 1e999}',
        b'{"step": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        "\ufeff{}".encode(),
        '{"a": 1}'.encode("utf-16"),
        b"\xff\xfe",
    ],
    ids=lambda content: ascii(content[:20]),
)
def test_what_is_no_strict_json_is_refused(content: bytes) -> None:
    with pytest.raises(DamagedCheckpointError):
        Manifest.decode(content, "file")


def test_a_field_that_is_missing_is_named() -> None:
    body = asdict(manifest())
    del body["clocks"]

    with pytest.raises(DamagedCheckpointError, match="wrong fields: clocks"):
        Manifest.decode(signed(body), "file")


def test_a_name_that_stands_twice_is_refused() -> None:
    content = manifest().encode()

    with pytest.raises(DamagedCheckpointError, match="twice"):
        Manifest.decode(content.replace(b'"step": 12,', b'"step": 12,\n "step": 12,'), "file")
