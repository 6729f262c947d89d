"""Several processes that train one run, as torchrun starts them; the command in one process is a run of one rank."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from hookloop.errors import ConfigError

if TYPE_CHECKING:
    from hookloop.core import Ranks

_PR_SET_PDEATHSIG = 1
LAUNCHER_SECONDS = 3.0
"""How long a rank that has lost another one waits to be ended, so that the first to end is the one to be blamed."""


def is_one_of_many() -> bool:
    """Tell whether torchrun has started this process as one of several."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


@contextmanager
def learners(command: Mapping[str, object]) -> Generator[Ranks]:
    """Meet the other processes of the run, if there are any, and part from them once all went well.

    Args:
        command: What this process was asked to do; all must be asked the same.
    """
    from hookloop.core import SingleProcess

    if not is_one_of_many():
        yield SingleProcess()
        return
    import torch

    from hookloop import __version__
    from hookloop.core.agreement import require_same
    from hookloop.distributed import join_ranks, leave_ranks

    _end_with_the_launcher()
    ranks = join_ranks()
    require_same(ranks, {"hookloop": __version__, "torch": torch.__version__, **_texts(command)})
    yield ranks
    leave_ranks()


def require_as_many(saved: int, ranks: Ranks) -> None:
    """Refuse to go on with another number of learners than a run began with: each has streams of its own."""
    if saved != ranks.world_size:
        start = "without torchrun" if saved == 1 else f"with torchrun --nproc-per-node {saved} -m hookloop train"
        raise ConfigError(
            f"The run was begun by {saved} learners, and these are {ranks.world_size}; it goes on with as many as it "
            f"began with: start it {start}."
        )


def who() -> str:
    """Return whose words follow, in a run of several processes."""
    return f"rank {os.environ.get('RANK', '?')}: " if is_one_of_many() else ""


def await_the_end() -> None:
    """Wait for torchrun to end this process, since another one has ended; not for ever."""
    if is_one_of_many():
        signal.signal(signal.SIGTERM, lambda number, _frame: end(128 + number))
        time.sleep(LAUNCHER_SECONDS)


def end(code: int) -> NoReturn:
    """End this process; one of several that ends badly does so at once, since parting would wait for the others."""
    if code and is_one_of_many():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _end_with_the_launcher() -> None:
    """Have the system ask this process to end, as Ctrl-C does, if torchrun is killed: nobody else would."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _texts(command: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in command.items()}
