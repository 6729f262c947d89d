from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from hookloop.charts import Curve, Panel, write_picture
from hookloop.errors import MissingExtraError

PANELS = [
    Panel("loss", [Curve("loss", [0.0, 1.0, 2.0, 3.0], [3.0, math.nan, 2.0, 1.0], run) for run in ("one", "$two$")]),
    Panel("both", [Curve(name, [0.0, 1.0], [1.0, 2.0], "one") for name in ("train", "val")], smooth_points=2),
]


@pytest.mark.parametrize(("ending", "beginning"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_a_picture_is_written_and_the_same_curves_give_the_same_bytes(
    ending: str, beginning: bytes, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        write_picture(tmp_path / f"{name}{ending}", PANELS, title="runs")

    first, second = ((tmp_path / f"{name}{ending}").read_bytes() for name in ("first", "second"))
    assert first.startswith(beginning)
    assert first == second


def test_texts_of_the_data_are_drawn_and_not_executed(tmp_path: Path) -> None:
    write_picture(
        tmp_path / "x.svg", [Panel("<script>", [Curve("a", [0.0], [1.0])])], title="<script>alert(1)</script>"
    )

    assert "<script" not in (tmp_path / "x.svg").read_text()


def test_letters_that_the_font_lacks_are_no_reason_to_complain(tmp_path: Path) -> None:
    write_picture(tmp_path / "x.png", [Panel("\N{CJK UNIFIED IDEOGRAPH-635F}", [Curve("loss", [0.0], [1.0])])])

    assert (tmp_path / "x.png").exists()


@pytest.mark.parametrize("values", [[], [math.nan], [math.inf, -math.inf], [1.0], [1e300, -1e300], [0.0, 0.0]])
def test_curves_with_little_to_draw_are_drawn(values: list[float], tmp_path: Path) -> None:
    curve = Curve("loss", [float(k) for k in range(len(values))], values)

    write_picture(tmp_path / "x.png", [Panel("loss", [curve], smooth_points=3)])

    assert (tmp_path / "x.png").stat().st_size > 1000


def test_another_format_and_no_panels_are_refused(tmp_path: Path) -> None:
    for path, panels in ((tmp_path / "x.gif", PANELS), (tmp_path / "x.png", [])):
        with pytest.raises(ValueError, match=r"a \.png or \.svg file of at least one panel"):
            write_picture(path, panels)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'hookloop\[plot\]'"):
        write_picture(tmp_path / "x.png", PANELS)
