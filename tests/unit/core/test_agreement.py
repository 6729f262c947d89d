"""What ranks agree on: requests, the end of a phase, steps that are left out, and that they do the same at all."""

from __future__ import annotations

import pytest

from hookloop.core import HookContext, HookManager, TrainerState, TrainingLoop
from hookloop.core.agreement import agree, require_same
from hookloop.core.rng import derive_seed, rank_seed
from hookloop.errors import RanksDifferError, WorkloadError
from hookloop.testing import FakeRanks, ToyWorkload


class Saver:
    ranks = "all"
    serves = ("checkpoint",)
    schedule = "every 100 epochs"

    def __init__(self) -> None:
        self.saved: list[int] = []

    def on_epoch_end(self, ctx: HookContext) -> None:
        self.saved.append(ctx.state.epoch)


def test_what_a_hook_of_main_asks_for_is_served_on_every_rank_in_the_same_epoch() -> None:
    def train(ranks: FakeRanks) -> list[int]:
        saver, hooks = Saver(), HookManager(ranks=ranks)
        hooks.add(saver)

        def ask(ctx: HookContext) -> None:
            if ctx.state.epoch == 1:
                ctx.request_checkpoint()

        hooks.add(ask, on="minibatch_end")
        TrainingLoop(ToyWorkload(4), hooks, watch_signals=False).run()
        return saver.saved

    assert FakeRanks.run(2, train) == [[2], [2]]


def test_what_is_asked_for_at_the_end_of_an_epoch_is_served_at_the_end_of_the_next() -> None:
    def train(ranks: FakeRanks) -> list[int]:
        saver, hooks = Saver(), HookManager(ranks=ranks)
        hooks.add(saver)

        def ask(ctx: HookContext) -> None:
            if ctx.state.epoch == 2:
                ctx.request_checkpoint()

        hooks.add(ask, on="epoch_end", before="Saver")
        TrainingLoop(ToyWorkload(4), hooks, watch_signals=False).run()
        return saver.saved

    assert FakeRanks.run(2, train) == [[3], [3]]


def test_a_phase_ends_for_all_if_one_wants_it_to() -> None:
    def meet(ranks: FakeRanks) -> bool:
        state = TrainerState(stop_update_epoch=ranks.rank == 1)
        agree(HookManager(ranks=ranks), state)
        return state.stop_update_epoch

    assert FakeRanks.run(3, meet) == [True, True, True]


@pytest.mark.parametrize("where", ["main", "all"])
def test_only_a_hook_of_all_ranks_can_leave_a_step_out(where: str) -> None:
    def train(ranks: FakeRanks) -> float:
        hooks = HookManager(ranks=ranks)
        hooks.add(lambda ctx: ctx.request_skip(), name="skipper", on="gradients", ranks=where)
        loop = TrainingLoop(ToyWorkload(2), hooks, watch_signals=False)
        loop.run()
        return loop.clocks.optimizer_steps

    if where == "all":
        assert FakeRanks.run(2, train) == [0, 0]
    else:
        with pytest.raises(WorkloadError, match="'skipper' asks to leave a step out, but runs on main alone"):
            FakeRanks.run(2, train)


def test_what_differs_between_ranks_is_named() -> None:
    def meet(ranks: FakeRanks) -> None:
        require_same(ranks, {"seed": "0", "recipe": "cartpole" if ranks.rank == 0 else "acrobot"})

    with pytest.raises(RanksDifferError, match="Rank 1 has another recipe than main: acrobot, where main has cart"):
        FakeRanks.run(2, meet)


def test_main_draws_what_a_single_process_draws_and_the_others_something_else() -> None:
    assert rank_seed(7, 0) == 7
    assert len({rank_seed(7, rank) for rank in range(4)}) == 4
    assert rank_seed(7, 1) == derive_seed(7, "rank", 1)


def test_rows_that_no_hook_of_this_rank_reports_are_dropped() -> None:
    class Reporter:
        stage = "report"

        def on_epoch_end(self, ctx: HookContext) -> None:
            ctx.drain_metrics()

    def train(ranks: FakeRanks) -> int:
        hooks = HookManager(ranks=ranks)
        hooks.add(Reporter())
        hooks.add(lambda: {"one": 1}, name="measure", on="minibatch_end", ranks="all")
        loop = TrainingLoop(ToyWorkload(3), hooks, watch_signals=False)
        loop.run()
        return len(loop.state.pending_metrics)

    assert FakeRanks.run(2, train) == [0, 0]
