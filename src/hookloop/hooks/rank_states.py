"""The state of a run of several ranks: what they share is saved once, what each has of its own is saved for each.

Shared is what the workload names as its ``parts``, the weights and the optimizer, and the state of the run itself.
Of its own a rank has the rest of its workload (environments, random streams, sums), its hooks, and the global streams.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hookloop.core import Ranks, TrainingLoop
from hookloop.errors import CheckpointError, RanksDifferError

Plain = Any
Parts = Mapping[str, tuple[str, ...]]

RANKS = "ranks"
_OWN = ("workload", "hooks", "random")


def whole_state(loop: TrainingLoop, parts: Parts) -> Plain | None:
    """Return the state of all ranks, to be saved by main; None on the others. Every rank calls this."""
    state, ranks = loop.state_dict(), loop.hooks.ranks
    if ranks.world_size == 1:
        return state
    from hookloop.checkpoints.parcel import pack, unpack  # with torch, which only a save needs

    own = {} if ranks.rank == 0 else {name: _without(state[name], _inside(name, parts)) for name in _OWN}
    told = ranks.gather(pack({"shared": _fingerprint(state, parts), "own": own}))
    if ranks.rank != 0:
        return None
    saved = [unpack(content) for content in told]
    _require_same_weights([each["shared"] for each in saved])
    return {**state, RANKS: [each["own"] for each in saved[1:]]}


def share_state(ranks: Ranks, found: Plain | None, parts: Parts) -> Plain | None:
    """Return this rank's part of a state that main has read; None if there is none. Every rank calls this."""
    if ranks.world_size == 1:
        return found
    from hookloop.checkpoints.parcel import pack, unpack

    content = ranks.broadcast(pack({"found": found}) if ranks.rank == 0 else b"")
    if ranks.rank == 0 or (found := unpack(content)["found"]) is None:
        return found
    own = found[RANKS][ranks.rank - 1]
    return {**found, **{name: _joined(own[name], found[name], _inside(name, parts)) for name in _OWN}}


def require_same_world(state: Plain, world_size: int, where: str) -> None:
    """Refuse a state that another number of ranks has saved: each has environments and streams of its own."""
    saved = len(state.get(RANKS, ())) + 1
    if saved != world_size:
        start = "without torchrun" if saved == 1 else f"with torchrun --nproc-per-node {saved}"
        raise CheckpointError(
            f"{where} was saved by a run of {saved} learners, and this one has {world_size}; a run goes on with as "
            f"many as it began with: start it {start}."
        )


def _inside(name: str, parts: Parts) -> list[tuple[str, ...]]:
    return [path[1:] for path in parts.values() if path[0] == name]


def _without(tree: Plain, paths: list[tuple[str, ...]]) -> Plain:
    """Return a tree without some of its branches."""
    for first, *rest in paths:
        tree = {
            name: _without(branch, [tuple(rest)]) if name == first else branch
            for name, branch in tree.items()
            if name != first or rest
        }
    return tree


def _joined(own: Plain, shared: Plain, paths: list[tuple[str, ...]]) -> Plain:
    """Return a tree with the branches it lacks, which are taken from another one."""
    for first, *rest in paths:
        branch = _joined(own[first], shared[first], [tuple(rest)]) if rest else shared[first]
        own = {**own, first: branch}
    return own


def _fingerprint(state: Plain, parts: Parts) -> str:
    """Return the hash of all tensors that ranks share."""
    from hookloop.checkpoints.tree import Disassembly

    sha256 = hashlib.sha256()
    taken = Disassembly(state, parts).tensors
    for part in parts:
        for name in sorted(taken[part]):
            tensor = taken[part][name]
            array = tensor if not hasattr(tensor, "detach") else _bytes(tensor)
            sha256.update(name.encode() + array.tobytes())
    return sha256.hexdigest()


def _bytes(tensor: Any) -> Any:
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _require_same_weights(found: list[str]) -> None:
    for rank, sha256 in enumerate(found):
        if sha256 != found[0]:
            raise RanksDifferError(
                f"Rank {rank} has other weights than main, so they no longer train one model. What changes training "
                "must do so on every rank: register the hook that does it with ranks='all'."
            )
