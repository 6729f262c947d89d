"""The loop's promises: order of events, one end in every case, safe stops, signals to a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hookloop.core import HookContext, HookManager, TrainingLoop
from hookloop.errors import WorkloadError
from hookloop.testing import FakeRanks, ToyWorkload, TraceHook
from tests.waiting import PATIENCE_SECONDS


def test_one_epoch_fires_its_events_in_the_documented_order() -> None:
    trace = TraceHook()

    TrainingLoop(ToyWorkload(1, steps_per_epoch=2, num_envs=4, minibatch_size=8), [trace]).run()

    assert trace.events == [
        "restore",
        "training_start",
        "epoch_start",
        "rollout_start",
        "step_end",
        "step_end",
        "episode_end",
        "rollout_end",
        "train_phase_start",
        "minibatch_start",
        "gradients",
        "optimizer_step",
        "minibatch_end",
        "train_phase_end",
        "epoch_end",
        "training_end",
        "close",
    ]


def test_events_report_completed_counts() -> None:
    trace = TraceHook()

    TrainingLoop(ToyWorkload(2, steps_per_epoch=2, num_envs=4), [trace]).run()

    at_epoch_ends = [(f.clocks["epochs"], f.clocks["env_steps"]) for f in trace.fired if f.event == "epoch_end"]
    at_epoch_starts = [f.clocks["epochs"] for f in trace.fired if f.event == "epoch_start"]
    assert at_epoch_ends == [(1, 8), (2, 16)]
    assert at_epoch_starts == [0, 1]


def test_the_context_knows_the_loop_it_belongs_to() -> None:
    seen: list[tuple[TrainingLoop | None, float]] = []

    def save(ctx: HookContext) -> None:
        assert ctx.loop is not None
        seen.append((ctx.loop, ctx.loop.state_dict()["state"]["clocks"]["epochs"]))

    loop = TrainingLoop(ToyWorkload(2), watch_signals=False)
    loop.hooks.add(save, on="epoch_end")
    loop.run()

    assert seen == [(loop, 1), (loop, 2)]
    assert HookContext().loop is None
    assert loop.context.snapshot().loop is None  # what runs in the background must not reach training


class EndCounter:
    def __init__(self) -> None:
        self.ends: list[str | None] = []
        self.closes = 0
        self.exceptions: list[str] = []

    def on_exception(self, exception: BaseException) -> None:
        self.exceptions.append(type(exception).__name__)

    def on_training_end(self, outcome: str) -> None:
        self.ends.append(outcome)

    def on_close(self) -> None:
        self.closes += 1


class RaisesAt:
    """Raises an error at one event of the second epoch."""

    def __init__(self, event: str, error: BaseException) -> None:
        def act(ctx: HookContext) -> None:
            if ctx.state.epoch >= 1 or event in ("training_start", "training_end", "close"):
                raise error

        setattr(self, f"on_{event}", act)


@pytest.mark.parametrize(
    "event",
    ["training_start", "epoch_start", "step_end", "gradients", "minibatch_end", "epoch_end"],
)
@pytest.mark.parametrize(
    ("error", "outcome"), [(OSError("no"), "failed"), (KeyboardInterrupt(), "interrupted"), (SystemExit(3), "failed")]
)
def test_the_end_comes_exactly_once_wherever_and_however_a_run_breaks(
    event: str, error: BaseException, outcome: str
) -> None:
    counter = EndCounter()
    loop = TrainingLoop(ToyWorkload(3), [RaisesAt(event, error), counter])

    with pytest.raises(type(error)):
        loop.run()

    assert counter.ends == [outcome]
    assert counter.closes == 1
    assert counter.exceptions == [type(error).__name__]
    assert loop.state.outcome == outcome


def test_an_error_in_the_end_itself_is_raised_after_everybody_has_ended_and_closed() -> None:
    counter = EndCounter()
    loop = TrainingLoop(ToyWorkload(1), [RaisesAt("training_end", OSError("final save")), counter])

    with pytest.raises(OSError, match="final save"):
        loop.run()

    assert counter.ends == ["completed"]
    assert counter.closes == 1
    assert loop.state.outcome == "failed"


def test_an_error_while_ending_does_not_hide_the_error_that_ended_the_run() -> None:
    first = ArithmeticError("NaN")
    hooks = [
        RaisesAt("epoch_end", first),
        RaisesAt("training_end", OSError("second")),
        RaisesAt("close", OSError("third")),
    ]

    with pytest.raises(ArithmeticError, match="NaN") as caught:
        TrainingLoop(ToyWorkload(3), hooks).run()

    notes = " ".join(caught.value.__notes__)
    assert "second" in notes
    assert "third" in notes


def test_hooks_close_in_reverse_order_each_isolated() -> None:
    closed: list[str] = []

    class Closing:
        def __init__(self, name: str) -> None:
            self.name = name

        def on_close(self) -> None:
            closed.append(self.name)
            if self.name == "b":
                raise OSError("b cannot close")

    loop = TrainingLoop(ToyWorkload(1), [Closing("a"), Closing("b"), Closing("c")])

    with pytest.raises(OSError, match="b cannot close"):
        loop.run()

    assert closed == ["c", "b", "a"]


def test_a_stop_is_honoured_at_the_end_of_the_epoch_and_announced_once() -> None:
    announced: list[str] = []

    class Stopper:
        def on_step_end(self, ctx: HookContext) -> None:
            ctx.request_stop("enough")
            ctx.request_stop("more than enough")

        def on_stop_requested(self, ctx: HookContext) -> None:
            announced.append(ctx.state.stop.reason)

    loop = TrainingLoop(ToyWorkload(5), [Stopper()])

    result = loop.run()

    assert (result.outcome, result.exit_code) == ("stopped", 0)
    assert result.clocks["epochs"] == 1
    assert announced == ["enough"]


def test_a_run_that_a_hook_stopped_stays_stopped_after_a_resume() -> None:
    first = TrainingLoop(ToyWorkload(5))
    first.hooks.add(lambda ctx: ctx.request_stop("patience"), name="early", on="epoch_end", schedule="every 2 epochs")
    first.run()
    second = TrainingLoop(ToyWorkload(5))
    second.hooks.add(lambda ctx: ctx.request_stop("patience"), name="early", on="epoch_end", schedule="every 2 epochs")

    second.load_state_dict(first.state_dict())
    result = second.run()

    assert result.outcome == "stopped"
    assert result.clocks["epochs"] == 2


def test_a_workload_may_leave_in_mid_epoch_at_a_safe_point_of_its_own() -> None:
    class Long(ToyWorkload):
        def run_epoch(self, loop: TrainingLoop) -> bool | None:
            with loop.train_phase():
                for _ in range(10):
                    loop.minibatch_start()
                    loop.minibatch_end(1.0)
                    if loop.should_leave():
                        return False
            return None

    trace = TraceHook()
    loop = TrainingLoop(Long(5), [trace])
    loop.hooks.add(lambda ctx: ctx.request_stop("time"), name="s", on="minibatch_end", schedule="at 3 minibatches")

    result = loop.run()

    assert result.outcome == "stopped"
    assert result.clocks["minibatches"] == 3
    assert "epoch_end" not in trace.events
    assert trace.events[-3:] == ["stop_requested", "training_end", "close"]


def test_a_workload_that_leaves_without_being_asked_is_told_so() -> None:
    class Deserter(ToyWorkload):
        def run_epoch(self, loop: TrainingLoop) -> bool | None:
            return False

    with pytest.raises(WorkloadError, match="nobody asked to stop"):
        TrainingLoop(Deserter(2)).run()


def test_every_rank_stops_at_the_same_epoch_when_one_asks() -> None:
    def train(ranks: FakeRanks) -> tuple[str, float]:
        hooks = HookManager(ranks=ranks)
        if ranks.rank == 0:
            hooks.add(lambda ctx: ctx.request_stop("main says so"), name="s", on="epoch_end", schedule="at 2 epochs")
        else:
            hooks.add(lambda ctx: None, name="s", on="epoch_end", schedule="at 2 epochs")
        result = TrainingLoop(ToyWorkload(10), hooks, watch_signals=False).run()
        return result.outcome, result.clocks["epochs"]

    assert FakeRanks.run(2, train) == [("stopped", 2), ("stopped", 2)]


PROGRAM = """
    import os, signal, sys, time
    from hookloop.core import HookContext, TrainingLoop
    from hookloop.testing import ToyWorkload

    class Slow(ToyWorkload):
        def run_epoch(self, loop):
            super().run_epoch(loop)
            print("epoch", flush=True)
            time.sleep({epoch_seconds})

    def at_end(ctx):
        print("end", ctx.outcome, loop.clocks.epochs, flush=True)

    loop = TrainingLoop(Slow(1000), second_signal={second!r})
    loop.hooks.add(at_end, on="training_end")
    loop.hooks.add(lambda: print("close", flush=True), name="closing", on="close")
    result = loop.run()
    print("result", result.outcome, result.exit_code, flush=True)
    sys.exit(result.exit_code)
"""


def start_program(tmp_path: Path, *, epoch_seconds: float, second: str = "exit") -> subprocess.Popen[str]:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM.format(epoch_seconds=epoch_seconds, second=second)))
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    assert process.stdout.readline() == "epoch\n"  # training has begun
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_finishes_the_epoch_and_ends_as_interrupted(tmp_path: Path, number: int, code: int) -> None:
    process = start_program(tmp_path, epoch_seconds=0.2)

    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)

    lines = [line for line in output.splitlines() if line != "epoch"]
    assert lines[0].startswith("end interrupted")
    assert lines[1:] == ["close", f"result interrupted {code}"]
    assert process.returncode == code


def test_a_second_signal_leaves_a_command_at_once(tmp_path: Path) -> None:
    process = start_program(tmp_path, epoch_seconds=10 * PATIENCE_SECONDS)

    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode in (130, 143)
    assert "result" not in output


def test_a_second_signal_raises_in_a_library_and_still_ends_and_closes(tmp_path: Path) -> None:
    process = start_program(tmp_path, epoch_seconds=10 * PATIENCE_SECONDS, second="raise")

    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert output.splitlines() == ["end interrupted 0", "close"]
    assert process.returncode != 0


def test_an_interrupted_run_goes_on_after_a_resume() -> None:
    class Interrupting(ToyWorkload):
        def run_epoch(self, loop: TrainingLoop) -> None:
            super().run_epoch(loop)
            if loop.clocks.epochs == 1:
                os.kill(os.getpid(), signal.SIGINT)

    first = TrainingLoop(Interrupting(4))
    assert first.run().outcome == "interrupted"
    second, whole = TrainingLoop(ToyWorkload(4)), TrainingLoop(ToyWorkload(4))

    second.load_state_dict(first.state_dict())

    assert second.run().outcome == "completed"
    assert whole.run().outcome == "completed"
    assert second.workload.state_dict() == whole.workload.state_dict()


def test_handlers_that_were_there_before_the_run_are_back_after_it() -> None:
    before = signal.getsignal(signal.SIGTERM)

    TrainingLoop(ToyWorkload(1)).run()

    assert signal.getsignal(signal.SIGTERM) is before


def test_a_run_can_go_on_in_the_same_process_after_an_interrupt() -> None:
    class Interrupting(ToyWorkload):
        def run_epoch(self, loop: TrainingLoop) -> None:
            super().run_epoch(loop)
            if loop.clocks.epochs == 1:
                os.kill(os.getpid(), signal.SIGINT)

    loop = TrainingLoop(Interrupting(4))

    assert loop.run().outcome == "interrupted"
    assert loop.run().outcome == "completed"
    assert loop.clocks.epochs == 4
