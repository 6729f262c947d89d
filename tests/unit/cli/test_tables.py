from __future__ import annotations

import json

import pytest

from hookloop.cli.tables import duration, moment, say, short, show_table, size, write_json


def test_json_is_strict_and_what_is_not_finite_is_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"a": [float("nan"), (float("-inf"), 1.5)], "b": None})

    def refuse(word: str) -> None:
        raise AssertionError(word)

    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == {"a": ["nan", ["-inf", 1.5]], "b": None}


def test_a_text_from_data_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(("name",), [["\x1b[31mred"]])
    say("a\rb")

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\r" not in out
    assert "[31mred" in out


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2e-6, "2 us"), (0.0123, "12.3 ms"), (1.5, "1.5 s"), (61, "1 min 01 s"), (7325, "2 h 02 min")],
)
def test_times_are_told_as_people_read_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_sizes_moments_and_values_are_told_as_people_read_them() -> None:
    assert [size(count) for count in (12, 159_315, 4_860_000)] == ["12 B", "159 kB", "4.86 MB"]
    assert [moment(0.0), moment(None)] == ["1970-01-01 00:00", "-"]
    assert [short(value) for value in (None, 0.123456, 7, "x")] == ["-", "0.1235", "7", "x"]
