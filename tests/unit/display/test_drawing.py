"""What a person sees: the panel, the compact form, numbers, bars and curves."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from hookloop.display import Block, Curve, Evaluation, Failure, RunView, SavedCheckpoint, TrackerHealth, draw
from hookloop.display.canvas import ASCII, Canvas
from hookloop.display.figures import duration, number, share

RISING = tuple(float(value) for value in range(40))
VIEW = RunView(
    run="first",
    recipe="cartpole",
    device="cpu",
    num_envs=64,
    parameters=9155,
    epoch=29,
    step=60_416,
    total_steps=100_000,
    steps_per_second=31_240.3,
    elapsed_seconds=72.4,
    eta_seconds=48.9,
    phases={"collect": 0.61, "train": 0.31},
    hooks={"checkpoint/save": 0.021, "stats": 0.011},
    curves={"losses/ppo/value": Curve(3.41, RISING[::-1]), "return/mean": Curve(412.3, RISING)},
    evaluations=(Evaluation("greedy", 487.0, 50_000, 500.0, 40_000),),
    checkpoint=SavedCheckpoint("step-000000050000", 50_000, 60.0),
    trackers=(TrackerHealth("stats"), TrackerHealth("wandb", False, 312, 4, "offline")),
)
SIZES = [(60, 12), (80, 24), (120, 30), (200, 60), (100, 16), (20, 4), (1, 1)]


def seen(view: RunView, width: int, height: int, **options: object) -> str:
    return draw(view, width, height, **options).text  # type: ignore[arg-type]  # passed on as they are


def fits(canvas: Canvas, width: int, height: int) -> bool:
    return len(canvas.lines) <= max(height - 1, 1) and all(cell_len(line.text) <= width for line in canvas.lines)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_no_line_is_wider_than_the_terminal_and_one_line_is_left_for_the_cursor(width: int, height: int) -> None:
    assert fits(draw(VIEW, width, height), width, height)
    assert fits(draw(VIEW, width, height, ASCII), width, height)


@given(
    view=st.builds(
        RunView,
        run=st.text(max_size=80),
        recipe=st.text(max_size=80),
        reason=st.text(max_size=80),
        step=st.integers(0, 10**18),
        total_steps=st.none() | st.integers(0, 10**18),
        epoch=st.integers(0, 10**12),
        steps_per_second=st.none() | st.floats(0, 1e18),
        elapsed_seconds=st.floats(),
        eta_seconds=st.none() | st.floats(),
        phases=st.dictionaries(st.text(max_size=40), st.floats(0, 2), max_size=4),
        hooks=st.dictionaries(st.text(max_size=40), st.floats(0, 2), max_size=30),
        curves=st.dictionaries(
            st.text(max_size=60), st.builds(Curve, st.floats(), st.tuples(st.floats(), st.floats())), max_size=30
        ),
        notes=st.dictionaries(st.text(max_size=20), st.text(max_size=100) | st.floats() | st.integers(), max_size=5),
        failures=st.lists(st.builds(Failure, st.text(), st.integers(1, 10**9), st.text()), max_size=3).map(tuple),
        blocks=st.lists(st.builds(Block, st.text(), st.lists(st.text(), max_size=20).map(tuple)), max_size=3).map(
            tuple
        ),
    ),
    width=st.integers(1, 220),
    height=st.integers(1, 70),
)
def test_whatever_a_view_holds_it_fits_and_cannot_steer_the_terminal(view: RunView, width: int, height: int) -> None:
    canvas = draw(view, width, height)

    assert fits(canvas, width, height)
    assert all(line.text.isprintable() for line in canvas.lines)


def test_the_panel_shows_everything_with_its_label() -> None:
    shown = seen(VIEW, 120, 30)

    for words in (
        "first · cartpole", "cpu · 64 envs · 9,155 parameters", "60.4 %", "60,416 of 100,000 steps", "31,240 steps/s",
        "epoch 29", "elapsed 0:01:12", "left 0:00:48", "step-000000050000  0:00:12 ago",
        "greedy 487.0 at 50,000 · best 500.0 at 40,000", "stats ok · wandb failing, 312 queued, 4 lost: offline",
        "running", "Ctrl-C saves and stops",
    ):  # fmt: skip
        assert words in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["│", "return/mean", "412.3"] in [row[:3] for row in rows]
    assert ["collect", "61", "%"] in [row[-5:-2] for row in rows]
    assert ["other", "4.8", "%"] in [row[-5:-2] for row in rows]
    assert ["checkpoint/save", "2.1", "%"] in [row[-5:-2] for row in rows]
    assert ["│", "failures", "none"] in [row[:3] for row in rows]


def test_returns_come_first_and_losses_last_whoever_made_the_view() -> None:
    shown = seen(VIEW, 120, 30)

    assert shown.index("return/mean") < shown.index("losses/ppo/value")


def test_a_rising_curve_rises_and_a_falling_one_falls() -> None:
    rising, falling = (line for line in seen(VIEW, 80, 24).splitlines() if "▁" in line)

    assert rising.endswith("█")
    assert falling.endswith("▁")


def test_a_small_terminal_gets_the_compact_form_with_what_matters_most() -> None:
    shown = seen(VIEW, 60, 6).splitlines()

    assert "╭" not in shown[0]
    assert shown[0].split() == ["first", "·", "cartpole", "running"]
    assert shown[1].endswith("60.4 %")
    assert shown[2] == "60,416 of 100,000 steps · 31,240 steps/s"
    assert shown[3] == "elapsed 0:01:12 · left 0:00:48 · epoch 29"
    assert shown[4].startswith("trackers stats ok · wandb failing")  # bad news is not what is left out


def test_failures_are_shown_in_every_form_before_anything_that_goes_well() -> None:
    view = replace(VIEW, failures=(Failure("upload", 3, "OSError('no route')", is_disabled=True),))

    for width, height in ((120, 30), (80, 24), (60, 6)):
        assert "upload 3 times, switched off: OSError('no route')" in seen(view, width, height)


def test_values_that_are_not_finite_are_shown_as_what_they_are() -> None:
    view = replace(VIEW, curves={"loss": Curve(float("nan"), (1.0, 2.0)), "kl": Curve(float("inf"))})

    shown = seen(view, 120, 30)

    assert "nan" in shown
    assert "inf" in shown


def test_a_run_without_a_goal_shows_no_percentage_and_no_time_left() -> None:
    shown = seen(replace(VIEW, total_steps=None, eta_seconds=None), 120, 30)

    assert "60,416 steps" in shown
    assert " left " not in shown
    assert "60.4" not in shown


def test_a_run_that_ended_says_how_and_offers_no_keys() -> None:
    shown = seen(replace(VIEW, status="interrupted", reason="received SIGINT"), 120, 30)

    assert "interrupted (received SIGINT)" in shown
    assert "Ctrl-C" not in shown
    assert "ago" not in shown


def test_only_what_is_done_is_a_hundred_percent() -> None:
    assert "99.9 %" in seen(replace(VIEW, step=99_999), 120, 30)
    assert "100.0 %" in seen(replace(VIEW, step=100_000), 120, 30)


def test_an_extra_block_is_shown_whole_or_not_at_all() -> None:
    view = replace(VIEW, blocks=(Block("board", ("X O X", "O X O", "X O X")),))

    assert "board" in seen(view, 120, 40)
    assert "X O X" in seen(view, 120, 40)
    assert "board" not in seen(view, 120, 18)


def test_more_metrics_than_lines_are_counted() -> None:
    view = replace(VIEW, curves={f"metric/{number}": Curve(1.0) for number in range(50)})

    assert "more metrics" in seen(view, 120, 30)


def test_a_terminal_without_unicode_gets_letters_it_has() -> None:
    assert draw(VIEW, 120, 30, ASCII).text.isascii()
    assert draw(VIEW, 60, 12, ASCII).text.isascii()


def test_wide_letters_count_as_two() -> None:
    view = replace(VIEW, run="囲碁" * 40, curves={"報酬/平均" * 8: Curve(1.0, RISING)})

    for width, height in SIZES:
        assert fits(draw(view, width, height), width, height)


def test_no_color_leaves_the_text_and_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    output = io.StringIO()

    Console(file=output, force_terminal=True, width=120, height=30).print(draw(VIEW, 120, 30))

    assert "return/mean" in output.getvalue()
    assert "\x1b[36m" not in output.getvalue()


@pytest.mark.parametrize(
    ("value", "words"),
    [(412.345, "412.3"), (3.41, "3.410"), (-0.01204, "-0.01204"), (0.0, "0"), (7.3e-6, "7.300e-06"),
     (12_345.6, "12,345.6"), (1.5e12, "1.500e+12"), (60_416, "60,416"), (float("nan"), "nan"), (9.9999, "10.000")],
)  # fmt: skip
def test_numbers_have_about_four_digits(value: float, words: str) -> None:
    assert number(value) == words


def test_shares_and_durations_are_as_people_say_them() -> None:
    assert [share(part) for part in (0.614, 0.021, 0.0004, 0.0, 1.0)] == ["61 %", "2.1 %", "<0.1 %", "0.0 %", "100 %"]
    times = [duration(seconds) for seconds in (0, 72.9, 3 * 86_400 + 3_661, None, float("inf"))]
    assert times == ["0:00:00", "0:01:12", "3d 01:01:01", "-", "-"]
