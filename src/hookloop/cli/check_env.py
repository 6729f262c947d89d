"""``hookloop check-env``: whether an environment behaves."""

from __future__ import annotations

import sys
from typing import Literal

from hookloop.cli.exit_codes import EXIT_DONE, EXIT_FAILED


def check_env(
    id: str,  # the word everybody uses for it
    *,
    num_envs: int = 4,
    mode: Literal["auto", "native", "sync", "async", "envpool"] = "auto",
    steps: int = 200,
) -> int:
    """Step an environment with random actions and report everything that is wrong with it.

    Args:
        id: The environment's id.
        num_envs: How many to step together.
        mode: How they are stepped.
        steps: How many steps to take.
    """
    from hookloop.rl.envs import check_envs, make_envs, steps_per_second

    envs = make_envs(id, num_envs, mode=mode)
    try:
        problems = check_envs(envs, steps=steps)
        speed = steps_per_second(envs)
    finally:
        envs.close()
    for problem in problems:
        _say(f"{problem.kind}: {problem}")
    promise = envs.exactness if envs.exactness == "bit-exact" else f"{envs.exactness}: {envs.inexact_because}"
    _say(f"{id}: {speed:.0f} steps/s with {num_envs} environments; resumes {promise}")
    errors = [problem for problem in problems if problem.kind == "error"]
    _say(f"{len(errors)} errors, {len(problems) - len(errors)} warnings")
    return EXIT_FAILED if errors else EXIT_DONE


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
