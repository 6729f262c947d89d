from __future__ import annotations

import importlib.util
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, ValidationError

from hookloop.config.settings import Settings, TrackersConfig
from hookloop.errors import MissingExtraError, NameClashError, UnknownNameError
from hookloop.trackers import JsonlTracker, make_tracker, make_trackers, registry, tracker_sources
from tests.unit.trackers.parts import ListTracker


def list_tracker(folder: Path, tells: bool = True) -> ListTracker:
    return ListTracker(tells=tells)


def install(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    point = EntryPoint(name, f"{__name__}:list_tracker", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])


def test_the_built_in_trackers_are_listed_without_importing_them() -> None:
    assert {"jsonl", "tensorboard", "trackio", "wandb"} <= set(tracker_sources())


def test_a_third_party_adds_its_tracker_by_entry_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, "theirs")

    made = make_trackers({"theirs": {"tells": False}}, tmp_path)

    assert list(made) == ["jsonl", "theirs"]
    assert isinstance(made["jsonl"], JsonlTracker)
    assert made["theirs"].open(None) is None  # type: ignore[arg-type]  # its argument is not looked at


def test_a_name_that_two_claim_cannot_be_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, "jsonl")

    with pytest.raises(NameClashError, match="'jsonl' is claimed by"):
        make_tracker("jsonl", tmp_path)


def test_a_misspelt_name_or_option_is_told_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"no tracker 'wandbb'. Did you mean 'wandb'\?"):
        make_tracker("wandbb", tmp_path)
    with pytest.raises(UnknownNameError, match=r"no option 'projct' of the tracker 'wandb'. Did you mean 'project'\?"):
        make_tracker("wandb", tmp_path, {"projct": "x"})
    with pytest.raises(UnknownNameError, match="no option 'module'"):
        make_tracker("wandb", tmp_path, {"module": "os"})


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "trackio"])
def test_a_missing_extra_is_named_before_training_starts(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(f"hookloop.trackers.{'wandb' if name == 'trackio' else name}.find_spec", _absent(name, found))

    with pytest.raises(MissingExtraError, match=rf"pip install 'hookloop\[{name}\]'"):
        make_tracker(name, tmp_path)


def _absent(name: str, found: Any) -> Any:
    return lambda wanted: None if wanted == name else found(wanted)


class SomeConfig(Settings):
    trackers: TrackersConfig = Field(default_factory=dict)


def test_settings_name_trackers_or_give_their_options() -> None:
    assert SomeConfig.model_validate({}).trackers == {}
    assert SomeConfig.model_validate({"trackers": "wandb"}).trackers == {"wandb": {}}
    assert SomeConfig.model_validate({"trackers": ["tensorboard", "wandb"]}).trackers == {
        "tensorboard": {},
        "wandb": {},
    }
    given = {"wandb": {"project": "x", "mode": "offline", "tags": ["a"]}}
    config = SomeConfig.model_validate({"trackers": given})
    assert config.trackers == given
    assert SomeConfig.model_validate_json(config.model_dump_json()) == config
    with pytest.raises(ValidationError):
        SomeConfig.model_validate({"trackers": {"wandb": 3}})
