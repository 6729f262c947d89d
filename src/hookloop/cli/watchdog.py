"""``hookloop watchdog``: watch a run from outside, and end it if it hangs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from hookloop.cli.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_HUNG
from hookloop.monitoring.outside import watch_heartbeat
from hookloop.runs.folder import find_run

_EXIT_CODES = {"ended": EXIT_DONE, "running": EXIT_DONE, "killed": EXIT_HUNG, "hung": EXIT_HUNG}


def watchdog(
    run: str,
    *,
    timeout: float = 600.0,
    policy: Literal["warn", "kill"] = "warn",
    grace: float = 10.0,
    once: bool = False,
    runs_dir: Path = Path("runs"),
) -> int:
    """Watch a run on this machine; say what it does, and what it hangs in.

    Args:
        run: The run's name, the beginning of it, its path, latest, or the path of a heartbeat file.
        timeout: Seconds in which nothing moves, neither a clock nor a phase nor a hook, until the run counts as hung.
        policy: What to do then: warn, or kill. Both first ask the run to write the stacks of its threads.
        grace: Seconds between SIGTERM and SIGKILL.
        once: Look once, say what the run does, and stop.
        runs_dir: The folder of all runs.
    """
    path = Path(run) if Path(run).is_file() else find_run(runs_dir, run).heartbeat_file
    verdict = watch_heartbeat(path, timeout, policy, once=once, grace_seconds=grace, say=_say)
    _say(verdict.words)
    return _EXIT_CODES.get(verdict.ending, EXIT_FAILED)


def _say(line: str) -> None:
    # What a heartbeat file holds is shown, so it must not be able to steer the terminal.
    sys.stdout.write("".join(letter if letter.isprintable() else "?" for letter in line) + "\n")
    sys.stdout.flush()
