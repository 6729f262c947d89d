"""Several ranks: who runs where, who decides, and that all agree."""

from __future__ import annotations

import pytest

from hookloop.core import HookContext, HookManager, TrainingLoop
from hookloop.errors import OrderError
from hookloop.testing import FakeRanks, ManualClock, ToyWorkload


def test_hooks_run_on_main_alone_unless_they_say_all() -> None:
    def train(ranks: FakeRanks) -> tuple[int, int]:
        main: list[int] = []
        everywhere: list[int] = []
        hooks = HookManager(ranks=ranks)
        hooks.add(lambda epoch: main.append(epoch), name="saver", on="epoch_end")
        hooks.add(lambda epoch: everywhere.append(epoch), name="heartbeat", on="epoch_end", ranks="all")
        TrainingLoop(ToyWorkload(3), hooks, watch_signals=False).run()
        return len(main), len(everywhere)

    assert FakeRanks.run(3, train) == [(3, 3), (0, 3), (0, 3)]


def test_what_depends_on_time_is_decided_by_mains_stopwatch() -> None:
    def train(ranks: FakeRanks) -> list[int]:
        clock = ManualClock()
        fired: list[int] = []
        hooks = HookManager(ranks=ranks, time_ns=clock)
        hooks.add(lambda epoch: fired.append(epoch), name="h", on="epoch_end", ranks="all", schedule="every 10 seconds")
        # Main's clock runs at 4 seconds an epoch, the other rank's at 1.
        hooks.add(
            lambda: clock.advance(4 if ranks.rank == 0 else 1), name="time", on="epoch_start", ranks="all"
        )  # fmt: skip
        TrainingLoop(ToyWorkload(8), hooks, watch_signals=False, time_ns=clock).run()
        return fired

    main, other = FakeRanks.run(2, train)

    assert main == other == [3, 5, 8]


def test_a_predicate_is_decided_on_main_for_all() -> None:
    def train(ranks: FakeRanks) -> list[int]:
        fired: list[int] = []

        class Decide:
            ranks = "all"

            def should_run(self, context: HookContext) -> bool:
                return rank == 0 and context.state.epoch == 2

            def run(self, context: HookContext) -> None:
                fired.append(context.state.epoch)

        rank = ranks.rank
        hooks = HookManager(ranks=ranks, default_event="epoch_end")
        hooks.add(Decide())
        TrainingLoop(ToyWorkload(4), hooks, watch_signals=False).run()
        return fired

    assert FakeRanks.run(2, train) == [[2], [2]]


def test_ranks_with_different_hooks_are_refused_before_the_first_step() -> None:
    def train(ranks: FakeRanks) -> None:
        hooks = HookManager(ranks=ranks)
        if ranks.rank == 1:
            hooks.add(lambda ctx: None, name="extra", on="epoch_end", ranks="all")
        TrainingLoop(ToyWorkload(1), hooks, watch_signals=False).run()

    with pytest.raises(OrderError, match=r"Rank 1 has the hooks \['extra'\], main has \[\]"):
        FakeRanks.run(2, train)
