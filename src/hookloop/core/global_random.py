"""The random streams that every program has: Python's, and those of numpy and torch if they are loaded.

hookloop draws from none of them. They are saved for the code of users, which may: dropout does, for one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any

Plain = Any


def seed_global_random(seed: int) -> None:
    """Let the streams begin where the seed says; without it Python's and numpy's differ from process to process."""
    random.seed(seed)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    if torch is not None:
        torch.manual_seed(seed)


def save_global_random() -> dict[str, Plain]:
    """Return where the streams stand, as strict JSON."""
    version, internal, gauss = random.getstate()
    saved: dict[str, Plain] = {"python": [version, list(internal), gauss]}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        saved["numpy"] = [kind, keys.tolist(), *rest]
    if torch is not None:
        saved["torch"] = [_text(torch.get_rng_state())]
        if torch.cuda.is_available():
            saved["cuda"] = [_text(state) for state in torch.cuda.get_rng_state_all()]
    return saved


def load_global_random(saved: Mapping[str, Plain]) -> None:
    """Let the streams go on from where they stood; those of libraries that are not loaded now are left out."""
    version, internal, gauss = saved["python"]
    random.setstate((version, tuple(internal), gauss))
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and "numpy" in saved:
        numpy.random.set_state(tuple(saved["numpy"]))
    if torch is not None and "torch" in saved:
        torch.set_rng_state(_state(torch, saved["torch"][0]))
        if "cuda" in saved and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([_state(torch, text) for text in saved["cuda"]])


def _text(state: Any) -> str:
    return state.numpy().tobytes().hex()


def _state(torch: Any, text: str) -> Any:
    return torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8)
