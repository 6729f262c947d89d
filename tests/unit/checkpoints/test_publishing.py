"""Checkpoints elsewhere: whole, under names that never change their content, and never in training's way."""

from __future__ import annotations

import sys
import threading
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest
from upath import UPath

from hookloop.checkpoints import Checkpoint, CheckpointStore, Description, Retention
from hookloop.checkpoints.publishing import Publisher, UriSink, WandbSink
from hookloop.errors import LocationError, MissingExtraError
from tests.saving import EVENT_SECONDS, about, is_same, manager_in, save, saved, state_at
from tests.waiting import wait_until


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return CheckpointStore(saved(tmp_path / "checkpoints", 1)).look("step-000000000001")


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://{uuid.uuid4().hex}" if request.param == "memory" else f"file://{tmp_path}/elsewhere"


class HeldSink:
    """A place that is slow: publishing waits until it is let go."""

    kind = "uri"

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()

    def publish(self, checkpoint: Checkpoint) -> str:
        self.has_begun.set()
        assert self.may_go_on.wait(EVENT_SECONDS)
        return f"held://{checkpoint.name}"


class BrokenSink:
    """A place that cannot be reached."""

    kind = "uri"

    def publish(self, checkpoint: Checkpoint) -> str:
        raise LocationError("no way there")


class NamedSink:
    """A place that only remembers names."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names: list[str] = []

    def publish(self, checkpoint: Checkpoint) -> str:
        self.names.append(checkpoint.name)
        return f"{self.kind}://{checkpoint.name}"


def test_what_is_published_is_the_whole_checkpoint(checkpoint: Checkpoint, place: str, tmp_path: Path) -> None:
    uri = UriSink(f"{place}/").publish(checkpoint)

    assert uri == f"{place}/run/step-000000000001-{checkpoint.manifest.sha256[:16]}"
    assert {path.name: path.read_bytes() for path in UPath(uri).iterdir()} == {
        path.name: path.read_bytes() for path in checkpoint.path.iterdir()
    }
    assert is_same(state_at(1), manager_in(tmp_path / "other").load(uri)[1])


def test_publishing_again_is_harmless(checkpoint: Checkpoint, place: str) -> None:
    assert UriSink(place).publish(checkpoint) == UriSink(place).publish(checkpoint)


def test_what_is_published_never_changes(checkpoint: Checkpoint, place: str, tmp_path: Path) -> None:
    """Another content has another name; and where somebody tampered, the copy is left as it is."""
    with manager_in(tmp_path / "others") as manager:
        manager.save(state_at(2), about(1))
        (other,) = manager.collect()
    uri = UriSink(place).publish(checkpoint)

    assert UriSink(place).publish(other) != uri
    (UPath(uri) / "MANIFEST.json").write_bytes(b"tampered")
    with pytest.raises(LocationError, match="never changes"):
        UriSink(place).publish(checkpoint)


def test_a_run_id_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    """A run's id comes out of a checkpoint that was resumed, and who wrote that is not known."""
    for run_id in ("../../outside", "..", "/etc", "a/b"):
        with manager_in(tmp_path / "checkpoints") as manager:
            manager.save(state_at(1), Description(step=1, run_id=run_id))
            checkpoint = manager.store.look("step-000000000001")
            with pytest.raises(LocationError, match="run_id"):
                UriSink(f"file://{tmp_path}/place/inner").publish(checkpoint)
            manager.store.delete("step-000000000001")

    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]


# In a thread


def test_the_uris_come_by_kind_once_it_is_done(checkpoint: Checkpoint) -> None:
    publisher = Publisher([NamedSink("uri"), NamedSink("wandb")], hold=lambda name, held: None)

    assert publisher.take() == {}
    assert publisher.start(checkpoint)
    assert publisher.take(wait=True) == {"uri": "uri://step-000000000001", "wandb": "wandb://step-000000000001"}
    assert publisher.take() == {}
    publisher.close()


def test_one_that_comes_while_another_is_under_way_is_left_out(checkpoint: Checkpoint) -> None:
    sink = HeldSink()
    publisher = Publisher([sink], hold=lambda name, held: None)
    publisher.start(checkpoint)
    assert sink.has_begun.wait(EVENT_SECONDS)

    assert not publisher.start(checkpoint)

    sink.may_go_on.set()
    assert publisher.take(wait=True) == {"uri": "held://step-000000000001"}
    publisher.close()


def test_what_is_being_published_is_held_until_it_is_done_or_has_failed(checkpoint: Checkpoint) -> None:
    for sink in (NamedSink("uri"), BrokenSink()):
        calls: list[tuple[str, bool]] = []
        publisher = Publisher([sink], hold=lambda name, held, calls=calls: calls.append((name, held)))
        publisher.start(checkpoint)
        publisher.close()

        assert calls == [(checkpoint.name, True), (checkpoint.name, False)]


def test_retention_does_not_delete_what_is_being_published(tmp_path: Path) -> None:
    sink = HeldSink()
    with manager_in(tmp_path, retention=Retention(keep_last=1)) as manager:
        publisher = Publisher([sink], manager.hold)
        save(manager, 1)
        publisher.start(manager.collect()[0])
        assert sink.has_begun.wait(EVENT_SECONDS)

        save(manager, 2, 3)
        assert manager.store.names() == ["step-000000000001", "step-000000000003"]

        sink.may_go_on.set()
        publisher.take(wait=True)
        save(manager, 4)
        assert manager.store.names() == ["step-000000000004"]
        publisher.close()


def test_a_broken_place_does_not_keep_a_checkpoint_from_the_others(checkpoint: Checkpoint) -> None:
    good = NamedSink("wandb")
    publisher = Publisher([BrokenSink(), good], hold=lambda name, held: None)
    publisher.start(checkpoint)

    with pytest.raises(LocationError, match="no way there"):
        publisher.take(wait=True)

    assert good.names == [checkpoint.name]
    assert publisher.take() == {"wandb": f"wandb://{checkpoint.name}"}
    publisher.close()


# The real wandb, without a network


def test_wandb_logs_an_artifact_while_offline(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is an extra: pip install 'hookloop[wandb]'")
    for name in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    with wandb.init(mode="offline", project="hookloop-tests", name="tiny") as run:
        uri = WandbSink(run).publish(checkpoint)

        assert uri == f"wandb-offline://{run.id}/tiny-checkpoint:step-000000000001"
    wanted = (b"tiny-checkpoint", b"model.safetensors", b"MANIFEST.json", checkpoint.id.encode())

    def is_all_written() -> bool:
        records = b"".join(file.read_bytes() for file in tmp_path.rglob("*.wandb"))
        return all(name in records for name in wanted)

    wait_until(is_all_written)  # a process of its own writes them, perhaps after the end


def test_without_wandb_the_sink_says_what_to_install(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    sink = WandbSink(SimpleNamespace(name="tiny", id="abc", offline=True))

    with pytest.raises(MissingExtraError, match=r"hookloop\[wandb\]"):
        sink.publish(checkpoint)
