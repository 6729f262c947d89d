"""A manifest is believed only if it is what was written, to the last letter, and means what it should."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from hookloop.checkpoints.manifest import FileEntry, Manifest
from hookloop.errors import DamagedCheckpointError
from tests.hostile_files import MEANINGLESS, NO_STRICT_JSON, SHA, signed


def manifest(**changes: Any) -> Manifest:
    sound = Manifest(
        run_id="run", name="step-000000000012", step=12, clock="epochs", clocks={"epochs": 12, "seconds": 1.5},
        attempt=1, parent=None, kind="periodic", created="2026-01-01", exactness="bit-exact", inexact_because="",
        environment={"torch": "2"}, config_sha256="", metrics={"return/mean": 1.25}, metadata={"a": [1, {"b": None}]},
        files={"state.json": FileEntry(2, SHA)},
    )  # fmt: skip
    return replace(sound, **changes)


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


@pytest.mark.parametrize("changes", MEANINGLESS, ids=lambda changes: ascii(changes)[:60])
def test_a_manifest_that_means_nothing_is_refused_though_its_hash_fits(changes: dict[str, Any]) -> None:
    with pytest.raises(DamagedCheckpointError, match=r"^the file "):
        Manifest.decode(signed({**asdict(manifest()), **changes}), "the file")


@pytest.mark.parametrize("content", NO_STRICT_JSON, ids=lambda content: ascii(content[:20]))
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
