from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hookloop.core import HookContext
from hookloop.core.clocks import Clocks
from hookloop.core.costs import HookCost
from hookloop.core.state import HookFailures
from hookloop.errors import MissingExtraError, StatsError, StatsWriteError
from hookloop.stats import StatsReader, StatsStore
from tests.unit.stats.logged import RUN, live_tables, log_epoch, metric_row, reading

START = reading(0)


class FakeTensor:
    """What a tensor looks like to someone who does not import torch."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def item(self) -> float:
        if len(self.values) != 1:
            raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
        return self.values[0]

    def tolist(self) -> list[float]:
        return list(self.values)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "a run" / "stats.sqlite"


def written(path: Path, act: Callable[[StatsStore], None]) -> StatsReader:
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, START)
        act(store)
    return StatsReader(path)


def test_the_rows_of_a_context_become_points_with_their_clocks(path: Path) -> None:
    ctx = HookContext()
    ctx.hook, ctx.event = "timer", "epoch_end"
    ctx.state.clocks.load({"epochs": 3, "env_steps": 30, "optimizer_steps": 6, "seconds": 1.5})
    ctx.log({"loss": 0.5})

    reader = written(path, lambda store: store.log_metrics(ctx.drain_metrics()))

    assert [tuple(point) for point in reader.metric(RUN, "loss")] == [(3, 30, 6, 1.5, 0.5)]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"a": {"b": {"c": 1}}}, {"a/b/c": 1.0}),
        ({"lengths": [1, 2, 6]}, {"lengths": 3.0}),
        ({"nothing": []}, {}),
        ({"flag": True}, {"flag": 1.0}),
        ({"scalar": FakeTensor(2.5)}, {"scalar": 2.5}),
        ({"several": FakeTensor(1.0, 2.0)}, {"several": 1.5}),
        ({"each": [FakeTensor(1.0), 3]}, {"each": 2.0}),
        ({"up": math.inf, "down": -math.inf}, {"up": math.inf, "down": -math.inf}),
        ({"text": "words", "none": None, "mixed": [1, "word"], "huge": 10**400, "kept": 1}, {"kept": 1.0}),
        ({"odd \x00 \ud800 name": 1}, {"odd \\0 \\ud800 name": 1.0}),
    ],
)
def test_values_of_every_kind_become_numbers(path: Path, values: dict[str, object], found: dict[str, float]) -> None:
    reader = written(path, lambda store: store.log_metrics([metric_row(values, START)]))

    assert {key: point.value for key, point in reader.latest(RUN).items()} == found


def test_a_value_that_is_not_a_number_is_named_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(path, lambda store: store.log_metrics([metric_row({"note": "words"}, START)] * 3))

    assert [record.getMessage().split("'")[1] for record in caplog.records] == ["note"]


def test_nan_is_told_from_a_missing_value_in_sql_and_through_the_reader(path: Path) -> None:
    reader = written(path, lambda store: store.log_metrics([metric_row({"loss": math.nan}, START)]))

    assert reader.sql("SELECT value, nonfinite FROM metrics") == [{"value": None, "nonfinite": "nan"}]
    assert math.isnan(reader.latest(RUN)["loss"].value)


def test_a_tensor_is_read_when_it_is_logged_not_when_it_is_written(path: Path) -> None:
    tensor = FakeTensor(1.0)

    def act(store: StatsStore) -> None:
        store.log_metrics([metric_row({"loss": tensor}, START)])
        tensor.values = (2.0,)

    assert written(path, act).latest(RUN)["loss"].value == 1.0


def test_a_key_that_is_logged_twice_at_one_moment_has_two_points_in_order(path: Path) -> None:
    rows = [metric_row({"a": 1.0, "b": 1.0}, START), metric_row({"a": 2.0}, START)]

    reader = written(path, lambda store: store.log_metrics(rows))

    assert [point.value for point in reader.metric(RUN, "a")] == [1.0, 2.0]


def test_rows_that_come_late_keep_their_place_and_replace_nothing(path: Path) -> None:
    def act(store: StatsStore) -> None:
        for epoch, value in ((1, 1.0), (2, 3.0), (1, 2.0)):
            store.log_metrics([metric_row({"a": value}, reading(epoch))])

    assert [point.value for point in written(path, act).metric(RUN, "a")] == [1.0, 2.0, 3.0]


def test_a_wall_clock_that_jumps_changes_no_order(tmp_path: Path) -> None:
    times = iter([1e9, 2e9, 5.0, 1e9, -3.0, 4e9, 7.0] + [0.0] * 500)
    steady, jumping = tmp_path / "steady", tmp_path / "jumping"
    for path, wall_time in ((steady, lambda: 0.0), (jumping, lambda: next(times))):
        with StatsStore(path, run_id=RUN, wall_time=wall_time) as store:
            store.begin_attempt(1, START)
            for epoch in range(1, 6):
                log_epoch(store, epoch)

    assert live_tables(jumping) == live_tables(steady)
    assert [row["epoch"] for row in StatsReader(jumping).epochs(RUN)] == [1, 2, 3, 4, 5]
    assert [row["epoch"] for row in StatsReader(jumping).events(RUN)] == [1, 2, 3, 4, 5]


def test_every_other_kind_of_row_is_kept_and_read_back(path: Path) -> None:
    clocks = Clocks(epochs=2, env_steps=20)

    def act(store: StatsStore) -> None:
        store.log_checkpoint("step-2", clocks, uri="file:///c", kind="best", size_bytes=9, metrics={"m": 1.0})
        store.log_replay("first", clocks, uri="file:///r", length=5, **{"return": math.nan, "lesson": "one"})
        store.log_hook_costs([HookCost("timer", "epoch_end", 3, 300, 200, 3)])
        store.log_hook_costs([HookCost("timer", "epoch_end", 4, 400, 200, 4)])
        store.log_hook_failures({"timer": HookFailures(2, "boom", "epoch_end", True)})
        store.log_lineage("run-1/step-2", "run-0/step-9", "forked", clocks, reason="a try")
        store.log_evaluation("greedy", {"mean": math.inf, "worst": -1}, clocks, checkpoint="step-2", note=math.nan)
        store.save_cursor("wandb", 2)

    reader = written(path, act)

    (checkpoint,), (replay,), (evaluation,) = reader.checkpoints(RUN), reader.replays(RUN), reader.evaluations(RUN)
    assert (checkpoint["kind"], checkpoint["size_bytes"], checkpoint["metrics"]) == ("best", 9, {"m": 1.0})
    assert math.isnan(replay["return"])
    assert replay["about"] == {"lesson": "one"}
    assert evaluation["score"] == math.inf
    assert evaluation["scores"] == {"mean": "inf", "worst": -1.0}
    assert evaluation["about"] == {"note": "nan"}
    assert [(row["calls"], row["total_ns"]) for row in reader.hook_costs(RUN)] == [(4, 400)]
    assert [(row["count"], bool(row["is_disabled"])) for row in reader.hook_failures(RUN)] == [(2, True)]
    assert reader.lineage(RUN)[0]["about"] == {"reason": "a try"}
    assert reader.cursor(RUN, "wandb") == 2


def test_a_run_says_what_it_is_and_how_its_attempts_went(path: Path) -> None:
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, START, name="first", recipe="cartpole", seed=3, config={"a": {"b": 1}}, tags=["x"])
        log_epoch(store, 1)
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, reading(1), resumed_from=10, versions={"torch": "2.13"})
        assert store.attempt == 2
        store.end_attempt("completed")

    reader = StatsReader(path)
    run, (first, second) = reader.run(RUN), reader.attempts(RUN)
    assert (run["name"], run["recipe"], run["seed"], run["tags"]) == ("first", "cartpole", 3, ["x"])
    assert (run["config"], run["status"]) == ({"a": {"b": 1}}, "completed")
    assert (first["outcome"], first["ended"], first["resumed_from"]) == ("killed", None, None)
    assert (second["outcome"], second["resumed_from"], second["versions"]["torch"]) == ("completed", 10, "2.13")


def test_a_resume_moves_the_future_that_was_given_up_aside(path: Path) -> None:
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, START)
        for epoch in range(1, 6):
            log_epoch(store, epoch)
        store.save_cursor("wandb", 5)
        store.begin_attempt(2, reading(3), resumed_from=30)

    reader = StatsReader(path)
    assert [row["epoch"] for row in reader.epochs(RUN)] == [1, 2, 3]
    assert [point.epoch for point in reader.metric(RUN, "return/mean")] == [1, 2, 3]
    assert [(row["epoch"], row["superseded_by"]) for row in reader.superseded(RUN)] == [(4, 2), (5, 2)]
    # Two epochs of six points, but for the learning rate that was logged at the very clocks of the checkpoint.
    assert len(reader.superseded(RUN, "points")) == 11
    assert reader.cursor(RUN, "wandb") == 5  # what a tracker has it is not told again


def test_a_resume_within_an_epoch_keeps_what_was_logged_before_it(path: Path) -> None:
    with StatsStore(path, run_id=RUN) as store:
        store.begin_attempt(1, START)
        log_epoch(store, 1)
        for env_steps in (12, 14, 16):
            store.log_metrics([metric_row({"loss": float(env_steps)}, reading(1, env_steps), "minibatch_end")])
        store.begin_attempt(2, reading(1, 14))
        store.log_metrics([metric_row({"loss": 99.0}, reading(1, 16), "minibatch_end")])

    assert [point.value for point in StatsReader(path).metric(RUN, "loss")] == [1.5, 2.5, 12.0, 14.0, 99.0]


def test_two_runs_share_a_database_and_do_not_see_each_other(path: Path) -> None:
    with StatsStore(path, run_id="a") as first, StatsStore(path, run_id="b") as second:
        for store in (first, second):
            store.begin_attempt(1, START)
            for epoch in (1, 2, 3):
                log_epoch(store, epoch)
        second.begin_attempt(2, reading(1))

    assert len(live_tables(path, "a")["metrics"]) == 18
    assert {row[1] for row in live_tables(path, "b")["metrics"]} == {0, 1}
    assert {row[1] for row in live_tables(path, "a")["metrics"]} == {0, 1, 2, 3}
    assert [run["run_id"] for run in StatsReader(path).runs()] == ["a", "b"]


def test_a_process_that_adds_to_a_run_later_replaces_nothing(path: Path) -> None:
    for _ in range(2):
        with StatsStore(path, run_id=RUN) as store:
            store.log_evaluation("greedy", {"mean": 1.0}, reading(3))

    assert [row["sequence"] for row in StatsReader(path).evaluations(RUN)] == [0, 1]


def test_what_is_flushed_is_there_and_what_is_not_waits(path: Path) -> None:
    with StatsStore(path, run_id=RUN, flush_seconds=60.0) as store:
        store.begin_attempt(1, START)
        log_epoch(store, 1)
        assert store.health().queued == 13
        assert StatsReader(path).epochs(RUN) == []

        store.flush()

        assert (store.health().queued, store.health().written) == (0, 13)
        assert len(StatsReader(path).epochs(RUN)) == 1


def test_rows_beyond_the_queue_are_dropped_and_the_next_flush_says_so(path: Path) -> None:
    with StatsStore(path, run_id=RUN, batch_rows=4, most_queued_rows=4, flush_seconds=60.0) as store:
        store.log_metrics([metric_row({str(n): 1.0 for n in range(5)}, START)])

        with pytest.raises(StatsWriteError, match="5 rows of statistics were dropped"):
            store.flush()
        store.flush()
        assert store.health().dropped == 5


def test_a_closed_store_takes_nothing_more(path: Path) -> None:
    store = StatsStore(path, run_id=RUN)
    store.close()
    store.close()

    store.log_event("who", "what", "why", START)

    assert store.health().dropped == 1
    with pytest.raises(StatsError, match="closed"):
        store.flush()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nobody_waits_for_a_thread_that_has_died(path: Path) -> None:
    def mistake(error: BaseException) -> None:
        raise ZeroDivisionError("a mistake in the thread")

    store = StatsStore(path, run_id=RUN, most_bytes=1, opens_late=True, on_failure=mistake)

    with pytest.raises(StatsError):
        store.flush(timeout=20.0)
    for thread in threading.enumerate():
        if thread.name == "hookloop-stats":
            thread.join()
    store.log_event("who", "what", "why", START)
    assert store.health().dropped == 1
    assert "has ended" in store.health().last_error


def test_a_closed_store_leaves_one_file(path: Path) -> None:
    written(path, lambda store: log_epoch(store, 1))

    assert [each.name for each in path.parent.iterdir()] == ["stats.sqlite"]


def test_what_cannot_be_a_database_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StatsError, match="SQLite or PostgreSQL, got 'mysql'"):
        StatsStore("mysql://host/name", run_id=RUN)
    with pytest.raises(ValueError, match="run_id"):
        StatsStore(tmp_path / "x", run_id="")
    with pytest.raises(StatsError, match="no file"):
        StatsReader("sqlite://")
    monkeypatch.setattr("hookloop.stats.database.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="postgres"):
        StatsStore("postgresql://host/name", run_id=RUN)
