"""The hook that writes everything a run reports to its statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookloop.checkpoints import CheckpointManager
from hookloop.core import HookContext, HookManager, TrainerState, TrainingLoop
from hookloop.hooks import CheckpointHook, StatsHook
from hookloop.stats import StatsClient, StatsReader
from hookloop.testing import ManualClock, ToyWorkload


def train(folder: Path, *hooks: object, epochs: int = 6, resume: bool = False, name: str = "s") -> TrainingLoop:
    client = StatsClient(folder / f"{name}.sqlite", run_id="run")
    saving = CheckpointHook(CheckpointManager(folder / name), checkpoint_interval=2, resume=resume)
    loop = TrainingLoop(
        ToyWorkload(epochs, seed=1),
        [StatsHook(client, name="mine", seed=1), saving, *hooks],
        state=TrainerState(seed=1),
    )
    loop.run()
    return loop


def table(folder: Path, name: str = "s") -> list[Any]:
    with StatsReader(folder / f"{name}.sqlite") as reader:
        return [
            (key, [(point.epoch, point.env_steps, point.value) for point in reader.metric("run", key)])
            for key in reader.keys("run")
        ]


def test_metrics_of_the_workload_and_of_hooks_are_kept_with_their_clocks(tmp_path: Path) -> None:
    def half(ctx: HookContext) -> dict[str, float]:
        return {"half": ctx.state.epoch / 2}

    half.__name__ = "half"
    loop = TrainingLoop(
        ToyWorkload(3), [StatsHook(StatsClient(tmp_path / "s.sqlite", run_id="run"))], state=TrainerState()
    )
    loop.hooks.add(half, on="epoch_end")
    loop.run()

    found = dict(table(tmp_path))
    assert [(epoch, value) for epoch, _, value in found["half/half"]] == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert len(found["loss"]) == 3


def test_a_resumed_run_has_one_curve_without_seam_or_duplicate(tmp_path: Path) -> None:
    train(tmp_path, epochs=6, name="whole")

    class Fails:
        def on_epoch_start(self, ctx: HookContext) -> None:
            if ctx.state.epoch == 5:
                raise RuntimeError("as if killed")

    with pytest.raises(RuntimeError, match="as if killed"):
        train(tmp_path, Fails(), epochs=6, name="parts")
    train(tmp_path, type("Fails", (), {"on_epoch_start": lambda self: None})(), epochs=6, name="parts", resume=True)

    assert table(tmp_path, "parts") == table(tmp_path, "whole")
    with StatsReader(tmp_path / "parts.sqlite") as reader:
        attempts = reader.attempts("run")
        assert [each["outcome"] for each in attempts] == ["failed", "completed"]
        assert attempts[1]["resumed_from"] == 4
        assert reader.run("run")["status"] == "completed"
        set_aside = reader.sql("SELECT what FROM superseded_events")  # it happened in a future that was given up
        assert {"what": "exception"} in set_aside


def test_rows_are_durable_before_the_checkpoint_they_belong_to(tmp_path: Path) -> None:
    seen: list[int] = []

    class Looks:
        def on_checkpoint_saved(self, ctx: HookContext) -> None:
            with StatsReader(tmp_path / "s.sqlite") as reader:
                seen.append(
                    len([row for row in reader.epochs("run") if row["epoch"] <= ctx.checkpoint.manifest.epochs])
                )

    train(tmp_path, Looks())

    assert seen == [2, 4, 6, 6]


def test_checkpoints_costs_and_failures_are_kept(tmp_path: Path) -> None:
    class Fails:
        name = "fails"
        on_error = "warn"

        def on_epoch_end(self) -> None:
            raise ValueError("no")

    train(tmp_path, Fails())

    with StatsReader(tmp_path / "s.sqlite") as reader:
        assert [row["kind"] for row in reader.checkpoints("run")] == ["periodic", "periodic", "periodic", "final"]
        assert [row["count"] for row in reader.hook_failures("run") if row["hook"] == "fails"] == [6]
        assert any(row["hook"] == "stats" and row["calls"] for row in reader.hook_costs("run"))


def test_a_database_that_cannot_be_written_never_stops_training(tmp_path: Path) -> None:
    (tmp_path / "s.sqlite").mkdir()

    loop = train(tmp_path)

    assert loop.clocks.epochs == 6
    assert (tmp_path / "s" / "step-000000000006-final").is_dir()


def test_costs_can_be_read_while_the_run_lasts(tmp_path: Path) -> None:
    clock, seen = ManualClock(), []
    hooks = HookManager(time_ns=clock)
    client = StatsClient(tmp_path / "s.sqlite", run_id="run")
    hooks.add(StatsHook(client))

    def look(ctx: HookContext) -> None:
        clock.advance(seconds=1.5)
        client.flush()
        with StatsReader(tmp_path / "s.sqlite") as reader:
            seen.append({row["hook"]: row["calls"] for row in reader.hook_costs("run") if row["event"] == "epoch_end"})

    hooks.add(look, on="epoch_end", stage="publish", name="look")
    TrainingLoop(ToyWorkload(4), hooks, time_ns=clock).run()

    assert seen[0] == {}
    assert seen[2]["look"] == 2


def test_what_is_logged_at_the_very_end_is_kept(tmp_path: Path) -> None:
    class Last:
        def on_training_end(self, ctx: HookContext) -> None:
            ctx.log({"last": 1.0})

    train(tmp_path, Last(), epochs=2)

    assert [(epoch, value) for epoch, _, value in dict(table(tmp_path))["last"]] == [(2, 1.0)]
