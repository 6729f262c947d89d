"""``hookloop export`` and ``hookloop import``: weights out of a run, and foreign weights into a safe file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hookloop.checkpoints.folder import read_files
from hookloop.checkpoints.retention import Retention
from hookloop.checkpoints.selectors import selected
from hookloop.checkpoints.store import CheckpointStore
from hookloop.cli.run_folder import find_run
from hookloop.errors import CheckpointError, ConfigError
from hookloop.storage.atomic import write_bytes

MODEL_FILE = "model.safetensors"


def export(run: str, *, to: Path, checkpoint: str = "latest", runs_dir: Path = Path("runs")) -> int:
    """Write the weights of a run to a file.

    Args:
        run: The run's name, or its path.
        to: The file to write, such as policy.safetensors; it must not exist.
        checkpoint: Which weights: latest, best, final, a step, an epoch such as epoch5, a path or a URI.
        runs_dir: The folder of all runs.
    """
    folder = find_run(runs_dir, run)
    _require_new(to)
    store = CheckpointStore(folder.checkpoints)
    wanted = folder.read_config().settings.get("checkpoints", {})
    retention = Retention(metric=wanted.get("metric", Retention.metric), mode=wanted.get("mode", Retention.mode))
    with selected(store, checkpoint, retention) as found:
        if MODEL_FILE not in found.manifest.files:
            raise CheckpointError(f"{found.path} holds no {MODEL_FILE}: its workload names no part 'model'.")
        content = read_files(found.path, found.manifest, max_bytes=store.max_bytes)[MODEL_FILE]
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
    import pickle

    import torch
    from safetensors.torch import save

    try:
        read = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise CheckpointError(
            f"{file} is not a file of tensors alone, and nothing else is imported: {_reason(error)}."
        ) from error
    tensors = {name: tensor.contiguous().clone() for name, tensor in _tensors(read, "")}
    if not tensors:
        raise CheckpointError(f"{file} holds no tensors.")
    write_bytes(to, save(tensors))
    _say(f"wrote {to}: {len(tensors)} tensors, {sum(tensor.numel() for tensor in tensors.values())} numbers")
    return 0


def _tensors(value: Any, prefix: str) -> list[tuple[str, Any]]:
    if hasattr(value, "detach"):
        return [(prefix or "tensor", value.detach())]
    if isinstance(value, dict):
        return [
            found for key, item in value.items() for found in _tensors(item, f"{prefix}.{key}" if prefix else str(key))
        ]
    return []


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
