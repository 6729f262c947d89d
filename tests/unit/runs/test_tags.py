from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hookloop.errors import ConfigError, UnknownNameError
from hookloop.runs.tags import add_tags, read_tags, remove_tags


def test_tags_are_added_and_removed(tmp_path: Path) -> None:
    assert read_tags(tmp_path) == []

    add_tags(tmp_path, ("good", "baseline"))
    add_tags(tmp_path, ("good",))
    remove_tags(tmp_path, ("baseline",))

    assert read_tags(tmp_path) == ["good"]


def test_tags_that_are_given_at_once_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: add_tags(tmp_path, (f"tag{k}",)), range(40)))

    assert len(read_tags(tmp_path)) == 40


@pytest.mark.parametrize("tag", ["", "..", "a/b", "../x", ".hidden", "a b", "x" * 65, "ä", "a\n"])
def test_a_tag_that_could_name_another_file_is_refused_and_none_is_added(tag: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="A tag must be"):
        add_tags(tmp_path, ("good", tag))

    assert list(tmp_path.iterdir()) == []


def test_a_tag_that_a_run_does_not_have_is_not_removed(tmp_path: Path) -> None:
    add_tags(tmp_path, ("good",))

    with pytest.raises(UnknownNameError, match=r"no tag 'god' on the run .* Did you mean 'good'"):
        remove_tags(tmp_path, ("good", "god"))
    assert read_tags(tmp_path) == ["good"]
