"""Configuration files: three formats that say the same, read without executing or losing anything."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.config.files import read_config
from hookloop.errors import ConfigError

SAME_IN_THREE_FORMATS = {
    "run.yaml": """
seed: 7
hooks:
  - use: logging
    args: {frequency: 100}
    schedule: every 10 epochs
  - use: time_limit
    args:
      limit_seconds: 1.5
    enabled: true
""",
    "run.toml": """
seed = 7

[[hooks]]
use = "logging"
schedule = "every 10 epochs"
[hooks.args]
frequency = 100

[[hooks]]
use = "time_limit"
enabled = true
[hooks.args]
limit_seconds = 1.5
""",
    "run.json": """
{"seed": 7, "hooks": [
  {"use": "logging", "args": {"frequency": 100}, "schedule": "every 10 epochs"},
  {"use": "time_limit", "args": {"limit_seconds": 1.5}, "enabled": true}
]}
""",
}


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal_of(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    return str(caught.value)


# Reading


@pytest.mark.parametrize("name", SAME_IN_THREE_FORMATS)
def test_the_three_formats_say_the_same(tmp_path: Path, name: str) -> None:
    read = read_config(written(tmp_path, name, SAME_IN_THREE_FORMATS[name]))

    assert read == {
        "seed": 7,
        "hooks": [
            {"use": "logging", "args": {"frequency": 100}, "schedule": "every 10 epochs"},
            {"use": "time_limit", "args": {"limit_seconds": 1.5}, "enabled": True},
        ],
    }


@pytest.mark.parametrize("name", ["run.yml", "run.YAML"])
def test_yaml_files_may_end_as_people_write_them(tmp_path: Path, name: str) -> None:
    assert read_config(str(written(tmp_path, name, "seed: 7"))) == {"seed": 7}


def test_the_words_on_off_yes_and_no_are_texts_and_not_truth_values(tmp_path: Path) -> None:
    path = written(tmp_path, "run.yaml", "on: epoch_end\ncountry: no\nsaid: yes\nlight: off\nreally: true\n")

    assert read_config(path) == {"on": "epoch_end", "country": "no", "said": "yes", "light": "off", "really": True}


def test_a_text_that_begins_like_a_truth_value_is_a_text(tmp_path: Path) -> None:
    path = written(tmp_path, "run.yaml", "name: true_returns\nfalse_alarm: 1\n")

    assert read_config(path) == {"name": "true_returns", "false_alarm": 1}


@pytest.mark.parametrize(("text", "number"), [("1e-4", 1e-4), ("3e5", 3e5), ("2.5e-3", 2.5e-3), ("1.0", 1.0)])
def test_a_number_with_an_exponent_is_a_number(tmp_path: Path, text: str, number: float) -> None:
    assert read_config(written(tmp_path, "run.yaml", f"rate: {text}")) == {"rate": number}


def test_a_mapping_may_take_over_the_entries_of_another_and_change_some(tmp_path: Path) -> None:
    path = written(tmp_path, "run.yaml", "base: &base {a: 1, b: 2}\nother:\n  <<: *base\n  b: 3\n")

    assert read_config(path)["other"] == {"a": 1, "b": 3}


names = st.text("abcdefgh_", min_size=1, max_size=6)
plain_data = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-1e6, 1e6, allow_subnormal=False) | names,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, plain_data, max_size=4))
def test_plain_data_survives_json_and_yaml(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> None:
    folder = tmp_path_factory.getbasetemp()

    assert read_config(written(folder, "plain.json", json.dumps(data))) == data
    assert read_config(written(folder, "plain.yaml", yaml.safe_dump(data))) == data


# Refusing


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "There is no file" in refusal_of(tmp_path / "missing.yaml")
    assert "missing.yaml" in refusal_of(tmp_path / "missing.yaml")


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "folder.yaml"
    folder.mkdir()

    assert "folder.yaml" in refusal_of(folder)


def test_a_file_of_another_kind_is_told_the_kinds_there_are(tmp_path: Path) -> None:
    message = refusal_of(written(tmp_path, "run.ini", "[hooks]"))

    assert "run.ini" in message
    assert ".json, .toml, .yaml, .yml" in message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("broken.yaml", "hooks: [1"),
        ("broken.json", '{"hooks": '),
        ("broken.toml", "hooks = [1"),
        ("bytes.yaml", b"hooks: \xff\xfe"),
        ("tab.yaml", "hooks:\n\t- use: logging"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, name: str, content: str) -> None:
    message = refusal_of(written(tmp_path, name, content))

    assert name in message
    assert "cannot be read" in message


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [("empty.yaml", "", "NoneType"), ("list.yaml", "- use: logging", "list"), ("text.json", '"hooks"', "str")],
)
def test_the_top_of_a_file_must_be_a_mapping(tmp_path: Path, name: str, content: str, kind: str) -> None:
    message = refusal_of(written(tmp_path, name, content))

    assert name in message
    assert f"must hold a mapping at its top, got {kind}" in message


@pytest.mark.parametrize(
    ("name", "content", "key"),
    [
        ("top.yaml", "seed: 1\nother: 2\nseed: 3\n", "seed"),
        ("deep.yaml", "hooks:\n  - use: logging\n    args: {frequency: 1, frequency: 2}\n", "frequency"),
        ("top.json", '{"seed": 1, "seed": 2}', "seed"),
        ("deep.json", '{"hooks": [{"use": "logging", "use": "time_limit"}]}', "use"),
    ],
)
def test_a_key_that_stands_twice_is_refused_and_not_replaced(tmp_path: Path, name: str, content: str, key: str) -> None:
    message = refusal_of(written(tmp_path, name, content))

    assert f"{key!r} stands twice" in message
    assert name in message


def test_a_key_that_stands_twice_is_refused_in_toml_too(tmp_path: Path) -> None:
    message = refusal_of(written(tmp_path, "twice.toml", "seed = 1\nseed = 2\n"))

    assert "twice.toml" in message
    assert "line 2" in message


def test_a_key_that_stands_twice_in_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    assert "line 3" in refusal_of(written(tmp_path, "twice.yaml", "seed: 1\nother: 2\nseed: 3\n"))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_not_strict_json_is_refused(tmp_path: Path, constant: str) -> None:
    message = refusal_of(written(tmp_path, "loose.json", f'{{"rate": {constant}}}'))

    assert constant in message
    assert "loose.json" in message


@pytest.mark.parametrize("key", ["[1, 2]", "{a: 1}"])
def test_a_key_that_is_no_name_is_refused(tmp_path: Path, key: str) -> None:
    assert "keys.yaml" in refusal_of(written(tmp_path, "keys.yaml", f"? {key}\n: 3\n"))


@pytest.mark.parametrize("name", ["deep.json", "deep.yaml"])
def test_a_file_that_is_nested_without_end_is_refused(tmp_path: Path, name: str) -> None:
    assert name in refusal_of(written(tmp_path, name, "[" * 3000))


def test_a_file_that_no_person_wrote_is_refused_before_it_is_read(tmp_path: Path) -> None:
    message = refusal_of(written(tmp_path, "huge.yaml", "#" * (1 << 20) + "\nseed: 1"))

    assert "huge.yaml is larger than 1 MiB" in message


@pytest.mark.parametrize(
    "content",
    [
        "seed: !!python/object/apply:os.putenv [LEFT_BEHIND, yes]",
        "seed: !!python/name:os.system",
        "seed: !!python/module:this",
        "!!python/object/new:os.system [exit 1]",
    ],
)
def test_nothing_in_a_file_is_executed_or_imported(tmp_path: Path, content: str) -> None:
    message = refusal_of(written(tmp_path, "evil.yaml", content))

    assert "evil.yaml" in message
    assert "python" in message
    assert "this" not in sys.modules
