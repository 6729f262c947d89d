"""What is trained in the races of supervised trainers, and the pace that lets contenders take turns inside it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter_ns, process_time_ns
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

RECORDED = 200
ENDLESS = 10**8


@dataclass(frozen=True, slots=True)
class Work:
    """A model, its data and its optimizer."""

    name: str
    steps: int
    """Steps in a turn."""
    batch_size: int
    batches: int
    """Batches in an epoch."""
    learning_rate: float
    optimizer: str
    clip: float | None = None

    def make_net(self) -> nn.Module:
        from hookloop.supervised.models import GPT

        torch.manual_seed(0)
        if self.name == "near-empty":
            return nn.Linear(4, 2)
        if self.name == "784-256-10":
            return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
        return GPT(65, 64, layers=4, heads=4, width=128)  # nanoGPT's settings for a CPU

    def make_data(self) -> tuple[Tensor, Tensor]:
        draw = torch.Generator().manual_seed(1)
        samples = self.batches * self.batch_size
        if self.name == "gpt":
            text = torch.randint(0, 65, (samples, 65), generator=draw)
            return text[:, :-1].contiguous(), text[:, 1:].contiguous()
        width, classes = (4, 2) if self.name == "near-empty" else (784, 10)
        return torch.randn(samples, width, generator=draw), torch.randint(0, classes, (samples,), generator=draw)

    def make_optimizer(self, parameters: Any) -> torch.optim.Optimizer:
        parameters = list(parameters)
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, lr=self.learning_rate)
        return torch.optim.AdamW(parameters, lr=self.learning_rate, weight_decay=0.01, fused=True)


WORKS = {
    work.name: work
    for work in (
        Work("near-empty", 256, 8, 256, 0.01, "sgd"),
        Work("784-256-10", 100, 128, 100, 1e-3, "adamw"),
        Work("gpt", 1, 12, 40, 1e-3, "adamw", clip=1.0),
    )
}


class Paced(nn.Module):
    """A network that stops between two steps to wait for its turn; what it costs to count is the same for all."""

    def __init__(self, net: nn.Module, steps: int) -> None:
        super().__init__()
        self.net = net
        self.losses: list[Tensor] = []
        self._steps, self._left = steps, 0
        self._began = perf_counter_ns(), process_time_ns()  # the first answer is the time until the first step
        self._answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)  # what a framework prints is not an answer

    def forward(self, inputs: Tensor) -> Tensor:
        if not self._left:
            self._wait()
        self._left -= 1
        return self.net(inputs)

    def judge(self, scores: Tensor, targets: Tensor) -> Tensor:
        if scores.dim() == 3:
            loss = functional.cross_entropy(scores.view(-1, scores.shape[-1]), targets.view(-1))
        else:
            loss = functional.cross_entropy(scores, targets)
        if len(self.losses) < RECORDED:
            self.losses.append(loss.detach())
        return loss

    def _wait(self) -> None:
        wall, cpu = perf_counter_ns(), process_time_ns()
        self._answers.write(json.dumps([wall - self._began[0], cpu - self._began[1]]) + "\n")
        if sys.stdin.readline().strip() != "go":
            self._answers.write(json.dumps([loss.item() for loss in self.losses]) + "\n")
            os._exit(0)  # most trainers know no other way out of the middle of an epoch
        self._left = self._steps
        self._began = perf_counter_ns(), process_time_ns()


class Feed:
    """Batches that are there already, epoch after epoch: what is left is the trainer."""

    def __init__(self, work: Work) -> None:
        inputs, targets = work.make_data()
        size = work.batch_size
        self.pairs = list(zip(inputs.split(size), targets.split(size), strict=True))

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(self.pairs)


class FeedSource:
    """The same batches in the form that hookloop takes."""

    exactness, inexact_because, seed = "bit-exact", "", 0

    def __init__(self, work: Work) -> None:
        self._pairs = Feed(work).pairs
        self._size = work.batch_size
        self.batches, self.samples = len(self._pairs), len(self._pairs) * self._size
        self.fingerprint: dict[str, Any] = {}

    def iterate(self, epoch: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(self._pairs[start:])

    def size_of(self, index: int) -> int:
        return self._size
