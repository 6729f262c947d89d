from __future__ import annotations

import math
from pathlib import Path

import pytest

from hookloop.charts import Panel
from hookloop.errors import UnknownNameError
from hookloop.runs.folder import RunConfig, RunFolder
from hookloop.runs.panels import by_group, chosen, measured, overview
from hookloop.stats import StatsStore


def make_run(path: Path, metrics: dict[str, list[float]]) -> RunFolder:
    """Make a run of an epoch of ten steps and half a second for each value; the second attempt begins after one."""
    folder, config = RunFolder(path), RunConfig("cartpole", 0, 1, {})
    folder.write_config(config)
    count = max(map(len, metrics.values()), default=0)
    with StatsStore(folder.stats_file, run_id=config.run_id) as store:
        store.begin_attempt(1, {"epochs": 0})
        for epoch in range(1, count + 1):
            if epoch == 2:
                store.begin_attempt(2, {"epochs": 1, "env_steps": 10, "optimizer_steps": 2}, resumed_from=10)
            clocks = {"epochs": epoch, "env_steps": 10 * epoch, "optimizer_steps": 2 * epoch, "seconds": 0.5 * epoch}
            values = {name: found[epoch - 1] for name, found in metrics.items() if epoch <= len(found)}
            store.log_metrics([{"hook": "", "event": "epoch_end", "clocks": clocks, "values": values}])
            store.log_epoch(clocks)
    return folder


def titles(panels: list[Panel]) -> list[str]:
    return [panel.title for panel in panels]


def test_the_six_panels_are_those_whose_metrics_exist(tmp_path: Path) -> None:
    names = ("loss", "val_loss", "accuracy", "val_accuracy", "learning_rate", "grad/norm", "grad/layer/norm", "other")
    supervised = measured(make_run(tmp_path / "one", {name: [1.0, 2.0] for name in names}), "epoch")

    panels = overview([supervised], "epoch", 1)

    six = ["loss", "accuracy", "learning rate", "gradient norm", "time per epoch", "throughput"]
    assert titles(panels) == six
    assert [panel.names for panel in panels[:4]] == [
        ["loss", "val_loss"], ["accuracy", "val_accuracy"], ["learning_rate"], ["grad/norm"],
    ]  # fmt: skip


def test_an_rl_run_shows_its_losses_one_by_one_and_its_return(tmp_path: Path) -> None:
    names = ("losses/ppo/policy", "losses/ppo/value", "losses/ppo/entropy", "return/mean", "return/max")
    run = measured(make_run(tmp_path / "one", {name: [1.0] for name in names}), "env_steps")

    panels = overview([run], "env_steps", 1)

    assert titles(panels) == ["policy loss", "value loss", "return", "time per epoch", "throughput"]
    assert panels[2].names == ["return/mean"]


def test_time_and_throughput_are_told_by_the_epochs(tmp_path: Path) -> None:
    run = measured(make_run(tmp_path / "one", {"x": [1.0, 1.0, 1.0]}), "env_steps")

    time, speed = overview([run], "env_steps", 1)

    assert (time.curves[0].x, time.curves[0].y) == ([10.0, 20.0, 30.0], [0.5, 0.5, 0.5])
    assert speed.curves[0].y == [20.0, 20.0, 20.0]


def test_a_run_that_has_not_completed_an_epoch_has_no_panels(tmp_path: Path) -> None:
    assert overview([measured(make_run(tmp_path / "one", {}), "epoch")], "epoch", 1) == []


def test_chosen_metrics_of_several_runs_share_a_panel_also_where_one_lacks_it(tmp_path: Path) -> None:
    one = measured(make_run(tmp_path / "one", {"a": [1.0, math.nan], "b": [1.0]}), "optimizer_steps")
    two = measured(make_run(tmp_path / "two", {"a": [2.0]}), "optimizer_steps")

    both, alone = chosen([one, two], ["a", "b", "a"], "optimizer_steps", 1)

    assert (both.runs, alone.runs) == (["one", "two"], ["one"])
    assert both.curves[0].x == [2.0, 4.0]
    assert len(both.curves[0].gaps) == 1


def test_a_metric_that_no_run_has_is_refused_with_the_nearest(tmp_path: Path) -> None:
    run = measured(make_run(tmp_path / "one", {"return/mean": [1.0]}), "epoch")

    with pytest.raises(UnknownNameError, match=r"no metric 'return/meen' in 'one'\. Did you mean 'return/mean'"):
        chosen([run], ["return/meen"], "epoch", 1)


def test_a_resume_is_marked_in_the_panels_of_one_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "one", {"a": [1.0, 2.0]})
    one = measured(folder, "env_steps")

    assert chosen([one], ["a"], "env_steps", 1)[0].marks == [(10.0, "resumed")]
    assert chosen([one, one], ["a"], "env_steps", 1)[0].marks == []


def test_metrics_are_grouped_by_what_stands_before_the_slash(tmp_path: Path) -> None:
    run = measured(make_run(tmp_path / "one", {"loss/a": [1.0], "loss/b": [1.0], "lone": [1.0]}), "epoch")

    assert {group: titles(found) for group, found in by_group(run, "epoch").items()} == {
        "loss": ["loss/a", "loss/b"],
        "other": ["lone"],
    }


def test_a_run_that_plays_shows_its_rating_how_games_end_and_matches_apart_from_its_return(tmp_path: Path) -> None:
    names = ("return/mean", "eval/rating", "eval/rating_low", "eval/rating_high", "game/recent/draws", "game/draws")
    folder = make_run(tmp_path / "one", {name: [1.0, 2.0] for name in names})
    with StatsStore(folder.stats_file, run_id=folder.read_config().run_id) as store:
        for name in ("match/random", "match/epoch-40", "eval@some"):
            store.log_evaluation(name, {"score": 0.5}, {"epochs": 2, "env_steps": 20, "seconds": 1.0}, episodes=2)

    panels = {panel.title: panel.names for panel in overview([measured(folder, "env_steps")], "env_steps", 1)}

    assert panels["rating"] == ["eval/rating", "eval/rating_high", "eval/rating_low"]
    assert panels["how games end"] == ["game/recent/draws"]
    assert panels["matches"] == ["evaluation match/random"]
    assert panels["return"] == ["return/mean", "evaluation eval@some"]
