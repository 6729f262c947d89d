"""What ranks must agree on at a safe point, in one exchange: who wants to stop, to end a phase, or to be served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hookloop.core.ranks import Ranks
from hookloop.core.state import StopRequest, TrainerState
from hookloop.errors import RanksDifferError

if TYPE_CHECKING:
    from hookloop.core.manager import HookManager

Plain = Any


def agree(hooks: HookManager, state: TrainerState) -> None:
    """Let every rank know what any of them has asked for; of two that want to stop the lower one's reason counts."""
    asked = hooks.ranks.gather(_wishes(state))
    stop = next((each["stop"] for each in asked if each["stop"] is not None), None)
    state.stop = None if stop is None else StopRequest(**stop)
    state.stop_update_epoch = any(each["stop_update_epoch"] for each in asked)
    for each in asked:
        for what, asker in each["requests"].items():
            state.requests.setdefault(what, asker)
    for what in list(state.requests):
        hooks.serve_request(what)


def require_same(ranks: Ranks, facts: Mapping[str, str]) -> None:
    """Refuse to begin where the processes are not about to do the same, and name what differs."""
    told = ranks.gather(dict(facts))
    for rank, found in enumerate(told):
        for name, main in told[0].items():
            if found.get(name) != main:
                raise RanksDifferError(
                    f"Rank {rank} has another {name} than main: {found.get(name)}, where main has {main}. Start all "
                    "ranks with the same command and the same code."
                )


def _wishes(state: TrainerState) -> dict[str, Plain]:
    return {
        "stop": None if state.stop is None else asdict(state.stop),
        "stop_update_epoch": state.stop_update_epoch,
        "requests": dict(state.requests),
    }
