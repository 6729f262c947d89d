"""What is saved of a run of several ranks, and what each is given back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookloop.checkpoints import CheckpointManager, CheckpointStore
from hookloop.checkpoints.parcel import pack, unpack
from hookloop.core import HookContext, HookManager, Ranks, TrainingLoop
from hookloop.errors import CheckpointError, RanksDifferError
from hookloop.hooks import CheckpointHook
from hookloop.testing import FakeRanks, ToyWorkload


class Shared(ToyWorkload):
    """Has weights that all ranks share, and a number that each has of its own."""

    parts: ClassVar[dict[str, tuple[str, ...]]] = {"model": ("learner", "weights")}

    def __init__(self, epochs: int, rank: int) -> None:
        super().__init__(epochs)
        self.weights = torch.zeros(2)
        self.own = 100 * rank

    def run_epoch(self, loop: TrainingLoop) -> Any:
        self.weights += 1
        self.own += 1
        return super().run_epoch(loop)

    def state_dict(self) -> dict[str, Any]:
        return {
            "toy": super().state_dict(),
            "own": self.own,
            "learner": {"weights": {"w": self.weights}, "n": self.own},
        }

    def load_state_dict(self, saved: Any) -> None:
        super().load_state_dict(saved["toy"])
        self.weights.copy_(saved["learner"]["weights"]["w"])
        self.own = saved["own"]
        assert saved["learner"]["n"] == self.own


def train(ranks: Ranks | None, folder: Path, epochs: int, *more: Any, resume: bool = False) -> Shared:
    workload = Shared(epochs, 0 if ranks is None else ranks.rank)
    hooks = HookManager(ranks=ranks)
    hooks.add(CheckpointHook(CheckpointManager(folder), resume=resume))
    for hook in more:
        hooks.add(hook, name="more", on="epoch_end")
    TrainingLoop(workload, hooks, watch_signals=False).run()
    return workload


def test_every_rank_goes_on_with_what_it_had(tmp_path: Path) -> None:
    FakeRanks.run(3, lambda ranks: train(ranks, tmp_path, 2))

    gone_on = FakeRanks.run(3, lambda ranks: train(ranks, tmp_path, 4, resume=True))

    assert [workload.own for workload in gone_on] == [4, 104, 204]
    assert all(workload.weights.tolist() == [4.0, 4.0] for workload in gone_on)


def test_the_weights_are_saved_once(tmp_path: Path) -> None:
    FakeRanks.run(2, lambda ranks: train(ranks, tmp_path, 2))

    found = CheckpointStore(tmp_path).read_latest()
    assert found is not None
    (other,) = found[1]["ranks"]
    assert other["workload"]["learner"] == {"n": 102}
    assert found[1]["workload"]["learner"]["weights"]["w"].tolist() == [2.0, 2.0]


def test_ranks_whose_weights_have_drifted_apart_are_found_out(tmp_path: Path) -> None:
    def drift(ctx: HookContext) -> None:  # on main alone
        assert ctx.loop is not None
        ctx.loop.workload.weights += 1  # type: ignore[attr-defined]

    with pytest.raises(RanksDifferError, match="Rank 1 has other weights than main"):
        FakeRanks.run(2, lambda ranks: train(ranks, tmp_path, 2, drift))


@pytest.mark.parametrize(("saved", "now", "words"), [(2, 3, "torchrun --nproc-per-node 2"), (1, 2, "without torchrun")])
def test_another_number_of_ranks_is_refused(tmp_path: Path, saved: int, now: int, words: str) -> None:
    FakeRanks.run(saved, lambda ranks: train(ranks, tmp_path, 1))

    with pytest.raises(CheckpointError, match=f"saved by a run of {saved} learners, and this one has {now}; .*{words}"):
        FakeRanks.run(now, lambda ranks: train(ranks, tmp_path, 2, resume=True))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=10,
)


@given(PLAIN, st.lists(st.floats(width=32), max_size=5))
def test_a_packed_state_is_the_same_when_it_is_unpacked(plain: Any, values: list[float]) -> None:
    tensor = torch.tensor(values, dtype=torch.float32)

    found = unpack(pack({"plain": plain, "nested": [{"tensor": tensor}]}))

    assert found["plain"] == plain
    assert torch.equal(found["nested"][0]["tensor"].view(torch.int32), tensor.view(torch.int32))
