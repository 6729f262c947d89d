"""Ranks over gloo, in real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from hookloop.core import Ranks
from hookloop.distributed.torch_ranks import TIMEOUT_VARIABLE, join_ranks
from hookloop.errors import ConfigError
from tests.ranks import environment, fork_ranks, run_ranks

LONG = "long " * 500


def test_values_of_any_length_and_tensors_come_over(tmp_path: Path) -> None:
    def act(ranks: Ranks) -> list[Any]:
        tensor = torch.tensor([1.0, 2.0 + ranks.rank], dtype=torch.float32)
        ranks.average(tensor)
        return [
            ranks.broadcast({"rank": ranks.rank}),
            ranks.broadcast(LONG if ranks.rank == 0 else ""),
            ranks.gather([ranks.rank, None, 0.1]),
            ranks.gather("short" if ranks.rank else LONG),
            [content.hex() for content in ranks.gather(bytes([ranks.rank]) * 3)],
            tensor.tolist(),
        ]

    first, second = run_ranks(2, act, tmp_path)

    assert first == second
    assert first == [
        {"rank": 0}, LONG, [[0, None, 0.1], [1, None, 0.1]], [LONG, "short"], ["000000", "010101"], [1.0, 2.5],
    ]  # fmt: skip


def test_a_rank_that_waits_for_one_that_has_ended_is_told_at_once(tmp_path: Path) -> None:
    def work(rank: int) -> int:
        from hookloop.errors import RankLostError

        ranks = join_ranks()
        ranks.gather("here")
        if rank == 1:
            return 7
        try:
            ranks.gather("still here")
        except RankLostError:
            return 8
        return 0

    main, other = fork_ranks(2, work, tmp_path)

    assert other.code() == 7
    assert main.code(10) == 8, main.output


def test_a_patience_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"HOOKLOOP_RANK_TIMEOUT is 'long'; it takes seconds"):
        join_ranks({**environment(0, 2, 1), TIMEOUT_VARIABLE: "long"})
