"""A write that fails says what to do, in words."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import pytest

from hookloop.checkpoints import CheckpointManager, Description
from hookloop.errors import CheckpointWriteError
from hookloop.storage.disk import LocalDisk


class FullDisk(LocalDisk):
    def write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failed_write_has_the_number_of_its_cause_and_a_sentence(tmp_path: Path) -> None:
    with (
        CheckpointManager(tmp_path, asynchronous=False, disk=FullDisk()) as manager,
        pytest.raises(CheckpointWriteError, match=r"^The checkpoint step-000000000001 could not be written") as failed,
    ):
        manager.save({}, Description(step=1))

    assert failed.value.errno == errno.ENOSPC
