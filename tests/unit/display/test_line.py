"""One line per look: greppable for people, JSON for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from hookloop.display import Curve, Evaluation, Failure, RunView, json_line, plain_line

WHEN = datetime(2026, 11, 15, 20, 1, 12, tzinfo=UTC)
VIEW = RunView(
    epoch=29,
    step=60_416,
    total_steps=100_000,
    steps_per_second=1240.4,
    eta_seconds=31.9,
    hooks={"stats": 0.05, "save": 0.011},
    curves={"losses/policy": Curve(-0.01204), "return/mean": Curve(412.345)},
    evaluations=(Evaluation("greedy", 487.0, 50_000, 487.0, 50_000),),
)


def test_the_line_has_stable_keys_in_a_stable_order() -> None:
    assert plain_line(VIEW, WHEN) == (
        "2026-11-15T20:01:12Z step=60416/100000 epoch=29 sps=1240 eta=32 hooks=6.1% "
        "return/mean=412.3 losses/policy=-0.01204 eval/greedy=487@50000"
    )


def test_what_is_not_known_is_left_out() -> None:
    assert plain_line(RunView(step=5), WHEN) == "2026-11-15T20:01:12Z step=5 epoch=0"


def test_failures_notes_and_how_it_ended_are_in_the_line() -> None:
    view = replace(VIEW, failures=(Failure("upload", 3),), notes={"opponent": "pool 7", "wins": 12}, status="stopped")

    line = plain_line(view, WHEN)

    assert "failed/upload=3" in line
    assert 'opponent="pool 7" wins=12' in line
    assert "status=stopped" in line
    assert "eta" not in line


def test_a_value_cannot_break_the_line_or_steer_the_terminal() -> None:
    line = plain_line(RunView(notes={"bad name": "a\nb\x1b[2J", "empty": ""}), WHEN)

    assert line.isprintable()
    assert '"bad name"="a?b?[2J" empty=""' in line


def test_json_is_strict_and_holds_the_same() -> None:
    view = replace(VIEW, curves={"loss": Curve(float("nan")), "return/mean": Curve(412.345)}, notes={"tag": "x"})

    found = json.loads(json_line(view, WHEN), parse_constant=lambda word: AssertionError(word))

    assert found == {
        "time": "2026-11-15T20:01:12Z", "step": 60_416, "epoch": 29, "sps": 1240, "eta": 32, "total_steps": 100_000,
        "hooks": 0.061, "return/mean": 412.345, "loss": None, "eval/greedy": {"score": 487.0, "step": 50_000},
        "tag": "x",
    }  # fmt: skip


def test_a_run_that_is_counted_in_epochs_says_so_and_slow_speeds_keep_their_digits() -> None:
    view = RunView(step=3, epoch=3, total_steps=20, unit="epochs", steps_per_second=0.104)

    assert plain_line(view, WHEN) == "2026-11-15T20:01:12Z epoch=3/20 sps=0.104"
    assert json.loads(json_line(view, WHEN))["unit"] == "epochs"
    assert "unit" not in json.loads(json_line(VIEW, WHEN))
