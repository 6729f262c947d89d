"""Background hooks: snapshots, order, errors under the same policy, joined before a save and at the end."""

from __future__ import annotations

import threading

import pytest

from hookloop.core import HookContext, TrainingLoop
from hookloop.testing import Harness, ToyWorkload, assert_pure

PATIENCE_SECONDS = 10


class Uploader:
    """Waits for leave before it works, off the training thread."""

    background = True

    def __init__(self, leave: threading.Event | None = None) -> None:
        self._leave = leave
        self._threads: set[str] = set()
        self._seen: list[int] = []

    def on_epoch_end(self, ctx: HookContext) -> dict[str, int]:
        if self._leave is not None:
            assert self._leave.wait(PATIENCE_SECONDS)
        self._threads.add(threading.current_thread().name)
        self._seen.append(ctx.state.epoch)
        return {"epoch": ctx.state.epoch}

    def __deepcopy__(self, memo: object) -> Uploader:
        return Uploader()


def test_a_background_hook_sees_the_state_of_its_moment_although_training_went_on() -> None:
    leave = threading.Event()
    hook = Uploader(leave)
    harness = Harness(hook)

    harness.epoch()
    harness.epoch()
    leave.set()
    harness.hooks.join(harness.context)

    assert hook._seen == [1, 2]
    assert all(name.startswith("hook-Uploader") for name in hook._threads)


def test_results_are_delivered_with_the_clocks_at_which_they_were_measured() -> None:
    leave = threading.Event()
    harness = Harness(Uploader(leave))

    harness.epoch()
    harness.advance(env_steps=500)
    leave.set()
    harness.hooks.join(harness.context)

    (row,) = harness.context.drain_metrics()
    assert row["values"] == {"Uploader/epoch": 1}
    assert row["clocks"]["env_steps"] == 0


def test_a_finished_result_is_taken_at_the_next_event_whichever_it_is() -> None:
    done = threading.Event()

    class Quick:
        background = True

        def on_epoch_end(self) -> dict[str, int]:
            return {"x": 1}

    harness = Harness(Quick())
    harness.epoch()
    runner = harness.hooks.entry("Quick").runner
    assert runner is not None
    runner._under_way[0].add_done_callback(lambda _future: done.set())  # after our own callback
    assert done.wait(PATIENCE_SECONDS)

    harness.fire("minibatch_end")

    assert harness.metrics == {"Quick/x": 1}


def test_training_waits_when_the_queue_is_full() -> None:
    leave = threading.Event()
    hook = Uploader(leave)
    harness = Harness(hook)
    harness.epoch()
    harness.epoch()
    third = threading.Thread(target=harness.epoch)

    third.start()
    third.join(0.1)
    is_waiting = third.is_alive()
    leave.set()
    third.join(PATIENCE_SECONDS)
    harness.hooks.join(harness.context)

    assert is_waiting
    assert hook._seen == [1, 2, 3]


def test_an_error_in_the_background_surfaces_under_the_hooks_policy() -> None:
    class Broken:
        background = True

        def on_epoch_end(self) -> None:
            raise OSError("upload refused")

    loop = TrainingLoop(ToyWorkload(3), [Broken()])

    with pytest.raises(OSError, match="upload refused") as caught:
        loop.run()

    assert "in hook 'Broken' at epoch_end" in caught.value.__notes__[0]
    assert loop.state.failures["Broken"].count >= 1


def test_a_failing_background_observer_does_not_end_the_run() -> None:
    class Broken:
        background = True
        on_error = "warn"

        def on_epoch_end(self) -> None:
            raise OSError("upload refused")

    result = TrainingLoop(ToyWorkload(3), [Broken()]).run()

    assert result.outcome == "completed"
    assert result.failures["Broken"].count == 3


def test_background_hooks_are_joined_before_their_state_is_saved() -> None:
    class Counting:
        background = True
        saved = ("count",)

        def __init__(self) -> None:
            self.count = 0

        def on_epoch_end(self) -> None:
            self.count += 1

    loop = TrainingLoop(ToyWorkload(6))
    counts: list[int] = []
    loop.hooks.add(Counting(), name="counting")
    loop.hooks.add(
        lambda: counts.append(loop.state_dict()["hooks"]["hooks"]["counting"]["state"]["count"]),
        name="save", on="epoch_end", stage="checkpoint",
    )  # fmt: skip

    loop.run()

    assert counts == [1, 2, 3, 4, 5, 6]


def test_a_stop_asked_for_in_the_background_reaches_the_loop() -> None:
    class Stopper:
        background = True

        def on_epoch_end(self, ctx: HookContext) -> None:
            if ctx.state.epoch == 2:
                ctx.request_stop("seen enough")

    loop = TrainingLoop(ToyWorkload(1000), [Stopper()])
    loop.hooks.add(lambda ctx: loop.hooks.join(ctx), name="join", on="epoch_end")

    result = loop.run()

    assert (result.outcome, result.clocks["epochs"]) == ("stopped", 2)
    assert result.stop is not None
    assert result.stop.by == "Stopper"


def test_what_a_background_hook_needs_is_copied() -> None:
    seen: list[list[float]] = []
    leave = threading.Event()

    def look(batch: list[float]) -> None:
        assert leave.wait(PATIENCE_SECONDS)
        seen.append(batch)

    harness = Harness()
    harness.hooks.add(look, on="minibatch_end", background=True, needs="batch")
    batch = [1.0]

    harness.fire("minibatch_end", batch=batch)
    batch[0] = 2.0
    leave.set()
    harness.hooks.join(harness.context)

    assert seen == [[1.0]]


def test_a_background_hook_leaves_training_alone() -> None:
    assert_pure(Uploader())


def test_threads_end_with_the_run() -> None:
    loop = TrainingLoop(ToyWorkload(3))
    loop.hooks.add(Uploader(), name="ending")

    loop.run()

    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hook-ending")]
