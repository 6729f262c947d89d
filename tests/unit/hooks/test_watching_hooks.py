"""Hooks that watch: stopwatch, machine, gradients, heartbeat and watchdog. They see everything and change nothing."""

from __future__ import annotations

import copy
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookloop.core import HookContext, HookManager, TrainingLoop
from hookloop.core.registry import register_hook_type
from hookloop.core.state import StopRequest
from hookloop.errors import RegistrationError, UnknownNameError
from hookloop.hooks import GradientStatsHook, HeartbeatHook, MonitorHook, StopwatchHook, WatchdogHook
from hookloop.monitoring import read_beat
from hookloop.monitoring.heartbeat import TOUCHED_FILE_VARIABLE
from hookloop.rl import Trainer
from hookloop.testing import FakeRanks, Harness, ManualClock, ToyWorkload, assert_pure, assert_resumable
from tests.unit.hooks.injections import OPTIMIZER_STEPS_PER_EPOCH, STEPS_PER_EPOCH, trainer


def watching_hooks(folder: Path) -> list[object]:
    return [
        StopwatchHook(with_hooks=True),
        MonitorHook(interval_seconds=0.001, sample_seconds=0.001),
        GradientStatsHook("every 3 optimizer_steps"),
        HeartbeatHook(folder / "heartbeat.json", interval_seconds=0.001),
        WatchdogHook({"hook": 60.0, "epoch": 60.0}, log_file=folder / "stacks.log"),
    ]


def own_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("hookloop-")]


class Rows:
    """Keeps the metrics that a run logs."""

    stage = "report"

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def on_epoch_end(self, ctx: HookContext) -> None:
        self._rows += ctx.drain_metrics()

    def values(self) -> dict[str, Any]:
        """Return the latest value of each metric."""
        return {name: value for row in self._rows for name, value in row["values"].items()}


# All of them leave training alone


@pytest.mark.parametrize("index", range(5))
def test_training_has_the_same_bits_with_and_without_it(index: int, tmp_path: Path) -> None:
    assert_pure(watching_hooks(tmp_path)[index])


@pytest.mark.parametrize("hook", [StopwatchHook(), GradientStatsHook("every 3 optimizer_steps")])
def test_it_resumes_exactly(hook: object) -> None:
    assert_resumable(hook)


def trained_bits(trained: Trainer) -> dict[str, Any]:
    clocks = {name: value for name, value in trained.state.clocks.reading().items() if name != "seconds"}
    return {"weights": trained.optimizer.flat.detach().tolist(), "clocks": clocks, "losses": trained.state.loss_stats}


def test_the_rl_trainer_has_the_same_bits_with_all_of_them_and_after_a_resume(tmp_path: Path) -> None:
    total = 4 * STEPS_PER_EPOCH
    plain, rows = trainer(), Rows()
    plain.train(total)
    saves: list[Any] = []
    watched = trainer(*watching_hooks(tmp_path), rows)
    watched.add_hook(lambda ctx: saves.append(copy.deepcopy(watched.state_dict())), name="save", on="epoch_end",
                     stage="checkpoint")  # fmt: skip
    watched.train(total)

    resumed = trainer(*watching_hooks(tmp_path), Rows())
    resumed.add_hook(lambda ctx: None, name="save", on="epoch_end", stage="checkpoint")
    resumed.load_state_dict(saves[1])
    resumed.train(total)

    assert trained_bits(watched) == trained_bits(plain)
    assert trained_bits(resumed) == trained_bits(plain)
    assert not watched.state.failures
    logged = rows.values()
    assert {"timing_per_epoch/msec/rollout", "timing_per_epoch/frac/train", "timing_cumulative/sec/total",
            "overview/steps_per_second", "grad/norm", "trainer_memory/model_bytes", "trainer_memory/optimizer_bytes",
            "trainer_memory/experience_bytes", "monitor/ram_percent/mean"} <= set(logged)  # fmt: skip
    assert own_threads() == []


NAMES = {"stopwatch": StopwatchHook, "monitor": MonitorHook, "gradient_stats": GradientStatsHook,
         "heartbeat": HeartbeatHook, "watchdog": WatchdogHook}  # fmt: skip


def test_a_configuration_can_name_them_and_gets_them_back() -> None:
    for name, hook_type in NAMES.items():
        register_hook_type(name)(hook_type)  # as the entry point of the installed package does
    items: list[dict[str, Any]] = [
        {"use": "stopwatch", "args": {"log_every": "every 5 epochs", "with_hooks": True}},
        {"use": "monitor", "args": {"interval_seconds": 30, "cost_per_hour": 2.5}},
        {"use": "gradient_stats", "args": {"schedule": "every 10 epochs", "per_parameter": False}},
        {"use": "heartbeat", "args": {"path": "beats/here.json", "interval_seconds": 1.5}},
        {"use": "watchdog", "args": {"deadlines": {"hook": 60, "hook:upload": 5}, "policy": "stop", "log_file": "x"}},
    ]
    hooks, by_hand = HookManager(), HookManager()

    hooks.add_config(items)
    for item in items:
        by_hand.add(NAMES[item["use"]](**item["args"]))

    assert [{key: item[key] for key in ("use", "args")} for item in by_hand.to_config()] == items
    assert hooks.to_config() == by_hand.to_config()


# Stopwatch


class TimedToy(ToyWorkload):
    """A toy whose rollouts take 3 s and whose training takes 1 s of a manual clock."""

    def __init__(self, clock: ManualClock, epochs: int = 4) -> None:
        super().__init__(epochs)
        self._clock = clock

    def run_epoch(self, loop: TrainingLoop) -> None:
        with loop.rollout():
            self._clock.advance(3.0)
            loop.step(env_steps=100)
        with loop.train_phase():
            self._clock.advance(1.0)
        with loop.evaluation() as metrics:
            self._clock.advance(0.5)
            metrics["score"] = 1.0
        self._clock.advance(0.5)


def timed_run(epochs: int, **arguments: Any) -> tuple[TrainingLoop, Rows, ManualClock]:
    clock, rows = ManualClock(), Rows()
    hooks = HookManager(time_ns=clock)
    hooks.add(StopwatchHook(**arguments), name="stopwatch")
    hooks.add(rows)
    return TrainingLoop(TimedToy(clock, epochs), hooks, watch_signals=False, time_ns=clock), rows, clock


def test_times_shares_and_speed_are_those_of_the_epoch() -> None:
    loop, rows, _ = timed_run(4, total_steps=1000)

    loop.run()

    logged = rows.values()
    assert logged["timing_per_epoch/msec/epoch"] == 5000.0
    assert logged["timing_per_epoch/msec/rollout"] == 3000.0
    assert logged["timing_per_epoch/frac/rollout"] == 0.6
    assert logged["timing_per_epoch/frac/evaluation"] == 0.1
    assert logged["timing_per_epoch/frac/other"] == pytest.approx(0.1)
    assert logged["timing_cumulative/sec/total"] == logged["metric/total_time"] == 20.0
    assert logged["timing_cumulative/sec/train"] == logged["metric/train_time"] == 4.0
    assert logged["timing_cumulative/sec/other"] == 2.0
    assert logged["overview/steps_per_second"] == logged["overview/steps_per_second_mean"] == 20.0
    assert logged["overview/eta_seconds"] == 30.0
    assert (logged["metric/agent_step"], logged["metric/epoch"]) == (400, 4)


def test_figures_per_epoch_are_means_where_several_are_logged_at_once() -> None:
    loop, rows, _ = timed_run(4, log_every="every 2 epochs")

    loop.run()

    assert rows.values()["timing_per_epoch/msec/rollout"] == 3000.0
    assert rows.values()["overview/steps_per_second"] == 20.0


def test_the_speed_of_a_run_that_is_counted_in_epochs_is_called_so() -> None:
    loop, rows, _ = timed_run(4, total_steps=8, clock="epochs")

    loop.run()

    logged = rows.values()
    assert logged["overview/epochs_per_second"] == logged["overview/epochs_per_second_mean"] == 0.2
    assert logged["overview/eta_seconds"] == 20.0
    assert "overview/steps_per_second" not in logged


def test_after_a_resume_speed_and_times_are_those_of_the_whole_run() -> None:
    first, _, _ = timed_run(2)
    saves: list[Any] = []
    first.hooks.add(lambda ctx: saves.append(copy.deepcopy(first.state_dict())), on="epoch_end", name="save",
                    stage="checkpoint")  # fmt: skip
    first.run()
    second, rows, clock = timed_run(4)
    second.hooks.add(lambda ctx: None, on="epoch_end", name="save", stage="checkpoint")
    clock.advance(1e5)  # another process, much later
    second.load_state_dict(saves[-1])

    second.run()

    assert rows.values()["timing_cumulative/sec/total"] == 20.0
    assert rows.values()["overview/steps_per_second"] == 20.0
    assert rows.values()["overview/steps_per_second_mean"] == 20.0


def test_hooks_are_timed_on_request() -> None:
    loop, rows, _ = timed_run(2, with_hooks=True)

    loop.run()

    assert rows.values()["timing_hooks/stopwatch/rollout_start/calls"] == 2
    assert rows.values()["timing_hooks/stopwatch/rollout_start/msec"] == 0.0


# Machine


def test_the_monitor_logs_memory_and_cost_and_ends_with_the_run() -> None:
    model = nn.Linear(10, 10)
    harness = Harness(MonitorHook(interval_seconds=10.0, cost_per_hour=3.6))
    harness.context.model = model
    harness.start()
    harness.advance(seconds=9)
    harness.epoch()
    assert harness.metrics == {}

    harness.advance(seconds=1)
    harness.epoch()
    harness.end()

    assert harness.metrics["trainer_memory/model_bytes"] == 440
    assert harness.metrics["monitor/cost"] == pytest.approx(0.01)
    assert own_threads() == []


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_no_thread_is_left_after_a_run_that_fails(tmp_path: Path, error: BaseException) -> None:
    seen: list[list[str]] = []

    def fail() -> None:
        seen.append(sorted(own_threads()))
        raise error

    loop = TrainingLoop(ToyWorkload(3), watching_hooks(tmp_path), watch_signals=False)
    loop.hooks.add(fail, on="minibatch_end")

    with pytest.raises(type(error)):
        loop.run()

    assert seen == [["hookloop-heartbeat", "hookloop-monitor", "hookloop-watchdog"]]
    assert own_threads() == []
    assert read_beat(tmp_path / "heartbeat.json").outcome == loop.state.outcome


@pytest.mark.parametrize("arguments", [{"interval_seconds": 0}, {"sample_seconds": -1}, {"history": 0}])
def test_a_monitor_without_sense_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match="must be"):
        MonitorHook(**arguments)


# Gradients


def statistics(tensor: torch.Tensor) -> dict[str, float]:
    values = tensor.detach().double()
    return {"mean": values.mean().item(), "variance": values.var(correction=0).item(), "norm": values.norm().item()}


def logged_gradients(harness: Harness, name: str = "") -> dict[str, float]:
    prefix = f"grad/{name}/" if name else "grad/"
    return {each: harness.metrics[f"{prefix}{each}"] for each in ("mean", "variance", "norm")}


def test_gradients_of_any_torch_model_are_told_whole_and_by_parameter() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    model(torch.randn(5, 3)).square().sum().backward()
    harness = Harness(GradientStatsHook("always"))

    harness.fire("gradients", model=model)

    whole = torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters() if parameter.grad is not None])
    assert logged_gradients(harness) == pytest.approx(statistics(whole), rel=1e-5)
    assert harness.metrics["grad/norm"] > 0
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert logged_gradients(harness, name) == pytest.approx(statistics(parameter.grad), rel=1e-5)
    assert harness.state.gradient_stats == logged_gradients(harness)
    assert harness.metrics["grad/not_finite"] == 0


def test_gradients_of_the_rl_trainer_are_never_zero() -> None:
    seen: list[dict[str, float]] = []
    watched = trainer(GradientStatsHook("always"))
    watched.add_hook(
        lambda ctx: seen.append({**statistics(ctx.optimizer.gradients), "logged": ctx.state.gradient_stats["norm"]}),
        on="gradients", name="check", priority=-1,
    )  # fmt: skip
    watched.train(STEPS_PER_EPOCH)

    assert len(seen) == OPTIMIZER_STEPS_PER_EPOCH
    assert all(each["norm"] > 0 and each["logged"] == pytest.approx(each["norm"], rel=1e-5) for each in seen)


def test_a_parameters_gradient_that_is_not_the_one_stepped_along_is_left_out() -> None:
    watched = trainer(GradientStatsHook("always"))
    parameter = next(iter(watched.policy.parameters()))
    parameter.grad = torch.full_like(parameter, 7.0)
    rows = Rows()
    watched.add_hook(rows)
    watched.train(STEPS_PER_EPOCH)

    name = next(name for name, each in watched.policy.named_parameters() if each is parameter)
    assert f"grad/{name}/norm" not in rows.values()
    assert rows.values()["grad/norm"] > 0


def test_without_gradients_nothing_is_logged_instead_of_zeros(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness(GradientStatsHook("always"))

    with caplog.at_level(logging.WARNING):
        harness.fire("gradients", model=nn.Linear(2, 2))
        harness.fire("gradients")

    assert harness.metrics == {}
    assert [record.message for record in caplog.records if "no gradients" in record.message] != []
    assert len(caplog.records) == 1


def test_what_is_not_finite_is_counted_and_can_be_saved() -> None:
    model = nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    assert model.bias.grad is not None
    model.bias.grad[0] = float("nan")
    harness = Harness(GradientStatsHook("always"))

    harness.fire("gradients", model=model)

    assert harness.metrics["grad/not_finite"] == 6
    assert "grad/norm" not in harness.metrics
    assert harness.metrics["grad/weight/norm"] == pytest.approx(2.0)
    harness.state.state_dict()


def test_gradients_are_looked_at_only_when_due() -> None:
    watched = trainer(GradientStatsHook("every 4 optimizer_steps", per_parameter=False))
    watched.train(2 * STEPS_PER_EPOCH)

    (cost,) = watched.hooks.entry("GradientStatsHook").costs()
    assert cost.calls == (2 * OPTIMIZER_STEPS_PER_EPOCH - 1) // 4


# Heartbeat


def test_the_heartbeat_names_phase_hook_and_clocks(tmp_path: Path) -> None:
    beats: dict[str, tuple[str, str]] = {}
    hook = HeartbeatHook(tmp_path / "heartbeat.json", interval_seconds=1e-4)

    def look(ctx: HookContext) -> None:
        while (beat := read_beat(tmp_path / "heartbeat.json")).hook != ctx.hook:
            pass
        beats[ctx.event] = beat.phase, beat.hook
        assert beat.stack_signal is not None

    loop = TrainingLoop(ToyWorkload(1), [hook], watch_signals=False)
    for event in ("training_start", "step_end", "minibatch_end", "epoch_end", "training_end"):
        loop.hooks.add(look, on=event, name=f"look {event}")

    loop.run()

    assert beats == {
        "training_start": ("start-up", "look training_start"),
        "step_end": ("epoch/rollout", "look step_end"),
        "minibatch_end": ("epoch/train", "look minibatch_end"),
        "epoch_end": ("epoch", "look epoch_end"),
        "training_end": ("end", "look training_end"),
    }
    assert read_beat(tmp_path / "heartbeat.json").outcome == "completed"


def test_every_rank_has_a_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOUCHED_FILE_VARIABLE, str(tmp_path / "alive"))

    def run(ranks: FakeRanks) -> None:
        hooks = HookManager(ranks=ranks)
        hooks.add(HeartbeatHook(tmp_path / "heartbeat.json"))
        TrainingLoop(ToyWorkload(2), hooks, watch_signals=False).run()

    FakeRanks.run(2, run)

    assert read_beat(tmp_path / "heartbeat.json").rank == 0
    assert read_beat(tmp_path / "heartbeat-rank1.json").rank == 1
    assert (tmp_path / "alive").exists()
    assert own_threads() == []


def test_a_run_may_be_run_again(tmp_path: Path) -> None:
    workload = ToyWorkload(1)
    loop = TrainingLoop(workload, [HeartbeatHook(tmp_path / "heartbeat.json")], watch_signals=False)
    loop.run()
    workload.epochs = 2
    loop.run()

    assert read_beat(tmp_path / "heartbeat.json").clocks["epochs"] == 2


# Watchdog


def test_a_deadline_for_nothing_that_exists_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'rollout'"):
        WatchdogHook({"rolout": 1.0})
    with pytest.raises(RegistrationError, match="'warn', 'stop' or 'abort', got 'shrug'"):
        WatchdogHook(policy="shrug")  # type: ignore[arg-type]


def test_a_deadline_for_a_hook_that_is_not_there_is_told(caplog: pytest.LogCaptureFixture) -> None:
    loop = TrainingLoop(ToyWorkload(1), [WatchdogHook({"hook:uplaod": 1.0})], watch_signals=False)

    with caplog.at_level(logging.WARNING):
        loop.run()

    assert "'hook:uplaod'" in caplog.text


def test_a_stop_by_the_watchdog_ends_an_attempt_and_not_the_run() -> None:
    loop = TrainingLoop(ToyWorkload(3), [WatchdogHook()], watch_signals=False)
    loop.state.stop = StopRequest("WatchdogHook", "hook 'upload' has taken 61 s", 1, 100)

    assert loop.run().outcome == "completed"
