"""What belongs to a Ray that we have started."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

pytest.importorskip("ray", reason="ray is not installed (extra ray)")

from hookloop.pools.ray_runtime import children_with  # it imports ray


def test_a_child_that_has_ended_and_was_not_waited_for_is_passed_over() -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass", "hookloop-test-word"])
    lives = subprocess.Popen([sys.executable, "-c", "input()", "hookloop-test-word"], stdin=subprocess.PIPE)
    try:
        while psutil.Process(ended.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)

        assert [child.pid for child in children_with("hookloop-test-word")] == [lives.pid]
    finally:
        lives.communicate(b"\n")
        ended.wait()
