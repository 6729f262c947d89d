"""What holds after every test that kills: nothing runs, nothing is locked, nothing is half done."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from hookloop.storage.lock import LOCK_NAME, RunLock
from tests.faults.processes import require_none_left, started


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Generator[None]:
    started.clear()
    yield
    require_none_left()
    for lock in tmp_path.rglob(LOCK_NAME):
        with RunLock(lock.parent):
            pass
    half_done = [path for pattern in (".tmp-*", ".trash-*", ".*.json.*") for path in tmp_path.rglob(pattern)]
    assert not half_done, f"half done: {half_done}"
