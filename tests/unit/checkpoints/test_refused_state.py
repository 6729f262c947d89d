"""What a checkpoint cannot hold is refused when it is saved, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookloop.checkpoints import CheckpointManager, Description
from hookloop.errors import HookStateError


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"workload": {"seen": {1, 2}}}, r"workload\.seen holds a set"),
        ({"workload": {"loss": float("nan")}}, r"workload\.loss is nan"),
        (
            {"workload": {"optimizer": {"state": {0: {}}}}},
            r"workload\.optimizer\.state has the key 0, which is no text",
        ),
    ],
)
def test_a_state_that_is_no_plain_data_is_refused_with_its_place(tmp_path: Path, state: Any, message: str) -> None:
    with CheckpointManager(tmp_path) as manager:
        with pytest.raises(HookStateError, match=message):
            manager.save(state, Description(step=1))

        assert manager.store.names() == []
