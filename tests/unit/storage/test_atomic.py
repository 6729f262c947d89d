from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hookloop.storage.atomic import write_bytes


@pytest.mark.parametrize(("is_private", "mode"), [(True, 0o600), (False, 0o640)])
def test_a_file_is_its_owners_alone_or_as_the_mask_of_the_process_says(
    is_private: bool, mode: int, tmp_path: Path
) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "x", b"content", is_private=is_private)
    finally:
        os.umask(before)

    assert (tmp_path / "x").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode


@pytest.mark.parametrize("is_durable", [True, False])
@pytest.mark.parametrize("is_private", [True, False])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    is_private: bool, is_durable: bool, tmp_path: Path
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "old").touch()

    with pytest.raises(OSError, match="directory"):
        write_bytes(tmp_path / "x", b"new", is_private=is_private, is_durable=is_durable)

    assert [file.name for file in tmp_path.iterdir()] == ["x"]
