from __future__ import annotations

import math

from hookloop.charts import Curve, Panel
from hookloop.charts.figures import bars_of, figure_of


def test_a_run_has_one_colour_in_every_panel_and_a_metric_one_dash() -> None:
    curves = [Curve(name, [0.0], [1.0], run) for run in ("one", "two") for name in ("train", "validation")]

    both = figure_of(Panel("loss", curves), ["one", "two"])["data"]
    alone = figure_of(Panel("return", [Curve("return", [0.0], [1.0], "two")]), ["one", "two"])["data"]

    colours, dashes = ([trace["line"][look] for trace in both] for look in ("color", "dash"))
    assert colours[0] == colours[1] != colours[2] == colours[3] == alone[0]["line"]["color"]
    assert dashes == ["solid", "dash", "solid", "dash"]
    assert [trace["name"] for trace in both] == ["one train", "one validation", "two train", "two validation"]


def test_what_is_not_finite_leaves_a_gap_and_a_mark() -> None:
    line, marks = figure_of(Panel("loss", [Curve("loss", [0.0, 1.0, 2.0], [5.0, math.nan, 4.0])]), [""])["data"]

    assert line["y"] == [5.0, None, 4.0]
    assert (marks["x"], marks["y"], marks["text"], marks["marker"]["symbol"]) == ([1.0], [5.0], ["nan"], "x")


def test_a_smoothed_curve_has_the_measured_one_pale_behind_it() -> None:
    pale, smooth = figure_of(Panel("loss", [Curve("loss", [0.0, 1.0], [0.0, 4.0])], smooth_points=3), [""])["data"]

    assert (pale["y"], smooth["y"]) == ([0.0, 4.0], [2.0, 2.0])
    assert pale["opacity"] < 0.5


def test_a_resume_is_a_line_and_the_first_has_a_word() -> None:
    marks = [(7.0, "resumed"), (8.0, "resumed")]
    layout = figure_of(Panel("loss", [Curve("loss", [0.0], [1.0])], marks=marks), [""])["layout"]

    assert [shape["x0"] for shape in layout["shapes"]] == [7.0, 8.0]
    assert [(note["x"], note["text"]) for note in layout["annotations"]] == [(7.0, "resumed")]


def test_texts_are_shown_letter_by_letter() -> None:
    name = "<b>x</b> & <a href='javascript:alert(1)'>y</a>"

    drawn = figure_of(Panel(name, [Curve(name, [0.0], [1.0])], x_name=name, y_name=name), [""])
    bars = bars_of({name: 1.0}, name)

    assert "<b>" not in str(drawn["layout"]) + str(drawn["data"][0]["name"]) + str(bars["data"][0]["y"])
    assert drawn["data"][0]["name"].startswith("&lt;b&gt;x&lt;/b&gt; &amp; ")


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    name = "layer" * 30 + "/norm"

    shown = figure_of(Panel("grad", [Curve(name, [0.0], [1.0])]), [""])["data"][0]["name"]

    assert len(shown) <= 48
    assert (shown[:10], shown[-5:]) == ("layerlayer", "/norm")


def test_bars_of_names_that_look_like_numbers_are_bars_of_names() -> None:
    assert bars_of({"1": 2.0, "2": 1.0}, "s")["layout"]["yaxis"]["type"] == "category"
