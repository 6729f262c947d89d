"""``hookloop import``: a good file of weights is converted; one that would run code is refused and runs none."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from tests.faults.command import hookloop, python

PATH = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])


class Calling:
    """Pickled, it is a call of a function with an argument."""

    def __init__(self, function: Any, argument: str) -> None:
        self._call = function, (argument,)

    def __reduce__(self) -> Any:
        return self._call


def torch_file(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def with_pickle(program: bytes) -> bytes:
    """Return a file of torch whose own pickle is replaced."""
    source, target = io.BytesIO(torch_file({"a": torch.ones(2)})), io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.infolist():
            is_pickle = item.filename.endswith("data.pkl")
            new.writestr(item.filename, program if is_pickle else old.read(item.filename))
    return target.getvalue()


def cycle() -> dict[str, Any]:
    inner: dict[str, Any] = {}
    inner["again"] = inner
    return inner


def deep(levels: int) -> dict[str, Any]:
    state: dict[str, Any] = {"a": torch.ones(1)}
    for _ in range(levels):
        state = {"a": state}
    return state


FILES: dict[str, Callable[[], bytes]] = {
    "a call of os.system": lambda: torch_file({"a": Calling(os.system, "touch HOSTILE-WAS-HERE")}),
    "a call of eval": lambda: torch_file({"a": Calling(eval, "open('HOSTILE-WAS-HERE', 'w')")}),
    "a call of exec": lambda: torch_file({"a": Calling(exec, "open('HOSTILE-WAS-HERE', 'w')")}),
    "the old format": lambda: torch_file({"a": Calling(os.system, "touch HOSTILE-WAS-HERE")},
                                         _use_new_zipfile_serialization=False),
    "a bare pickle": lambda: pickle.dumps(Calling(os.system, "touch HOSTILE-WAS-HERE")),
    "a pickle of the first kind": lambda: b"cos\nsystem\n(S'touch HOSTILE-WAS-HERE'\ntR.",
    "a pickle inside": lambda: with_pickle(b"cos\nsystem\n(S'touch HOSTILE-WAS-HERE'\ntR."),
    "a pickle that ends": lambda: with_pickle(b"\x80\x02}"),
    "a pickle that pops nothing": lambda: with_pickle(b"\x80\x020."),
    "a pickle with a memo of nothing": lambda: with_pickle(b"\x80\x02h\x05."),
    "a pickle that builds on nothing": lambda: with_pickle(b"\x80\x02}N\x86b."),
    "a pickle with an unknown storage": lambda: with_pickle(b"\x80\x02K\x01Q."),
    "a whole model": lambda: torch_file(torch.nn.Linear(2, 2)),
    "nothing": lambda: b"",
    "a text": lambda: b"weights",
    "half a file": lambda: torch_file({"a": torch.ones(100)})[:400],
    "no tensors": lambda: torch_file({"a": 1}),
    "a state in itself": lambda: torch_file(cycle()),
    "a deep state": lambda: torch_file(deep(400)),
    "a tensor larger than its file": lambda: torch_file({"a": torch.ones(1).expand(1 << 40)}),
    "a tensor of no known type": lambda: torch_file({"a": torch.ones(2, 2).to_sparse()}),
    "two tensors of one name": lambda: torch_file({"a.b": torch.ones(1), "a": {"b": torch.zeros(1)}}),
}  # fmt: skip

CHILD = """
import contextlib, io, json, sys
from pathlib import Path
from tests.faults.audited import FORBIDDEN, Watch, outcome
from hookloop.cli.export import import_

watch = Watch()
sys.addaudithook(watch)
report = {}
for place in sorted(Path(sys.argv[1]).iterdir()):
    watch.run = place if place.name != "000" else None
    with contextlib.redirect_stdout(io.StringIO()):
        found = outcome(lambda: import_(place / "weights.pt", to=place / "out.safetensors"))
    watch.run = None
    report[place.name] = [found, list(watch.seen)]
    watch.seen.clear()
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imports")


@pytest.fixture(scope="module")
def reports(folder: Path) -> dict[str, Any]:
    good = torch_file({"a": torch.ones(2)})
    for number, content in enumerate([good, good, *(make() for make in FILES.values())]):
        (folder / f"{number:03d}").mkdir()
        (folder / f"{number:03d}" / "weights.pt").write_bytes(content)
    finished = python("-c", CHILD, folder, PYTHONPATH=PATH)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_a_good_file_is_imported_without_unpickling_a_class(reports: dict[str, Any]) -> None:
    assert reports["001"] == ["accepted", []]


@pytest.mark.parametrize("number", range(len(FILES)), ids=list(FILES))
def test_a_hostile_file_is_refused_and_runs_nothing(reports: dict[str, Any], folder: Path, number: int) -> None:
    found, seen = reports[f"{number + 2:03d}"]

    assert seen == []
    assert found == "CheckpointError"
    assert not (folder / f"{number + 2:03d}" / "out.safetensors").exists()


def test_the_command_converts_a_good_file_bit_for_bit(tmp_path: Path) -> None:
    state = {"model": {"w": torch.randn(3, 2).T, "b": torch.ones(2, dtype=torch.bfloat16)}, "epoch": 3}
    torch.save(state, tmp_path / "good.pt")

    finished = hookloop("import", tmp_path / "good.pt", "--to", tmp_path / "good.safetensors")

    assert finished.returncode == 0, finished.stderr
    read = safetensors.torch.load_file(tmp_path / "good.safetensors")
    assert read.keys() == {"model.w", "model.b"}
    assert torch.equal(read["model.w"], state["model"]["w"])
    assert read["model.b"].dtype == torch.bfloat16


def test_the_command_refuses_a_hostile_file_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "evil.pt").write_bytes(FILES["a call of os.system"]())

    finished = hookloop("import", tmp_path / "evil.pt", "--to", tmp_path / "evil.safetensors")

    assert finished.returncode == 2
    assert "is not a file of tensors alone, and nothing else is imported" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["evil.pt"]
