"""``hookloop export`` and ``hookloop import``: weights out of a run, and foreign weights into a safe file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hookloop.checkpoints.folder import read_files
from hookloop.checkpoints.selectors import selected
from hookloop.checkpoints.store import CheckpointStore
from hookloop.checkpoints.strict_json import MAX_DEPTH
from hookloop.errors import CheckpointError, ConfigError
from hookloop.runs.folder import find_run
from hookloop.storage.atomic import write_bytes

MODEL_FILE = "model.safetensors"


def export(run: str, *, to: Path, checkpoint: str = "latest", runs_dir: Path = Path("runs")) -> int:
    """Write the weights of a run to a file.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        to: The file to write, such as policy.safetensors; it must not exist.
        checkpoint: Which weights: latest, best, final, a step, an epoch such as epoch5, a path or a URI.
        runs_dir: The folder of all runs.
    """
    from hookloop.checkpoints.tensor_file import TensorFile  # with numpy, which a wrong argument should not cost

    folder = find_run(runs_dir, run)
    _require_new(to)
    store = CheckpointStore(folder.checkpoints)
    with selected(store, checkpoint, folder.read_retention()) as found:
        if MODEL_FILE not in found.manifest.files:
            raise CheckpointError(f"{found.path} holds no {MODEL_FILE}: its workload names no part 'model'.")
        content = read_files(found.path, found.manifest, max_bytes=store.max_bytes)[MODEL_FILE]
        TensorFile(content, str(found.path / MODEL_FILE))  # what others are going to open should be what it is called
        write_bytes(to, bytes(content))
        _say(f"wrote {to} ({len(content)} bytes), the weights of {found.id}")
    return 0


def import_(file: Path, *, to: Path) -> int:
    """Turn a foreign weights file (.pt, .pth) into safetensors; nothing in it is executed.

    Args:
        file: What torch.save wrote: tensors by name, or a mapping of such mappings.
        to: The file to write, such as weights.safetensors; it must not exist.
    """
    _require_new(to)
    if not file.is_file():
        raise ConfigError(f"There is no file {str(file)!r} to import.")
    content, tensors = _as_safetensors(file)
    write_bytes(to, content)
    _say(f"wrote {to}: {len(tensors)} tensors, {sum(tensor.numel() for tensor in tensors.values())} numbers")
    return 0


def _as_safetensors(file: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the content of the new file, and the tensors in it by name."""
    import pickle

    import torch
    from safetensors.torch import save

    # Whatever a file that was made by hand may lead the reader into: each means that it is no file of tensors.
    unreadable = (
        pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError,
        AssertionError, ArithmeticError, MemoryError,
    )  # fmt: skip
    try:
        read = torch.load(file, map_location="cpu", weights_only=True)
        tensors = _named(_tensors(read, "", MAX_DEPTH), most_bytes=file.stat().st_size)
        content = save(tensors)
    except unreadable as error:
        raise CheckpointError(
            f"{file} is not a file of tensors alone, and nothing else is imported: {_reason(error)}."
        ) from error
    if not tensors:
        raise CheckpointError(f"{file} holds no tensors.")
    return content, tensors


def _tensors(value: Any, prefix: str, levels: int) -> list[tuple[str, Any]]:
    if hasattr(value, "detach"):
        return [(prefix or "tensor", value.detach())]
    if not isinstance(value, dict):
        return []
    if levels == 0:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    inner = [(f"{prefix}.{key}" if prefix else str(key), item) for key, item in value.items()]
    return [found for name, item in inner for found in _tensors(item, name, levels - 1)]


def _named(found: list[tuple[str, Any]], *, most_bytes: int) -> dict[str, Any]:
    """Return tensors by name, each with memory of its own."""
    tensors: dict[str, Any] = {}
    for name, tensor in found:
        if name in tensors:
            raise ValueError(f"it holds two tensors named {name!r}")
        if tensor.numel() * tensor.element_size() > most_bytes:  # one number can be shown as any number of them
            raise ValueError(f"{name!r} claims to be larger than the file")
        tensors[name] = tensor.contiguous().clone()
    return tensors


def _reason(error: Exception) -> str:
    """Return what was found; torch's message goes on with the advice to run the code in the file."""
    found = re.search(r"Unsupported global: GLOBAL (\S+)", str(error))
    if found is not None:
        return f"it holds a {found[1]}; save the tensors of its state_dict() instead"
    return "torch cannot read it"


def _require_new(to: Path) -> None:
    if to.exists():
        raise ConfigError(f"{to} exists already; nothing is replaced. Choose another name.")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
