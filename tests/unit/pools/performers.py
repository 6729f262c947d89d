"""What workers compute in these tests."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


class Roller:
    """Rolls a small recurrent policy out: every number depends on the weights, the seed and all numbers before it."""

    def __init__(self) -> None:
        self.version = -1
        self.weight = torch.zeros(0)

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        self.version = version
        self.weight = tensors["weight"].clone()

    def perform(self, payload: Any) -> Any:
        generator = torch.Generator().manual_seed(payload["seed"])
        state = torch.randn(self.weight.shape[0], generator=generator)
        states: list[Tensor] = []
        for _ in range(payload.get("steps", 20)):
            state = torch.tanh(self.weight @ state + 0.1 * torch.randn(state.shape, generator=generator))
            states.append(state)
        time.sleep(payload.get("seconds", 0.0))
        while "until" in payload and not Path(payload["until"]).exists():
            time.sleep(0.001)
        return {"states": torch.stack(states), "last": state.numpy(), "seed": payload["seed"]}

    def close(self) -> None:
        pass


class Trouble(Roller):
    """Does what its payload says, which is mostly no good."""

    def perform(self, payload: Any) -> Any:
        what = payload.get("what", "roll")
        if "once" in payload:  # the second time is no trouble
            try:
                Path(payload["once"]).touch(exist_ok=False)
            except FileExistsError:
                what = "roll"
        return getattr(self, what)(payload)

    def roll(self, payload: Any) -> Any:
        return super().perform(payload)

    def fail(self, payload: Any) -> Any:
        raise ArithmeticError(f"no good: seed {payload['seed']}")

    def end(self, payload: Any) -> Any:
        os._exit(7)

    def hang(self, payload: Any) -> Any:
        while True:
            time.sleep(60.0)

    def unsendable(self, payload: Any) -> Any:
        return lambda: payload


class Closing(Roller):
    """Leaves a mark when it is closed."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = Path(folder)

    def close(self) -> None:
        time.sleep(0.05)
        (self.folder / str(os.getpid())).touch()


class Extremes:
    """Says the smallest and the largest of its weights, and their version."""

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        self.found = (version, tensors["weight"].min().item(), tensors["weight"].max().item())

    def perform(self, payload: Any) -> Any:
        return self.found

    def close(self) -> None:
        pass


def weights(seed: int = 0) -> dict[str, Tensor]:
    return {"weight": torch.randn(8, 8, generator=torch.Generator().manual_seed(seed))}


def never_made() -> Roller:
    raise ModuleNotFoundError("no simulator here")
