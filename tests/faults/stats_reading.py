"""Reads a database without a pause for some seconds, and counts what went well and what did not.

Run as a script with a path and a number of seconds; prints the counts as JSON.
"""

from __future__ import annotations

import json
import sys
import time

from hookloop.errors import StatsError
from hookloop.stats import StatsReader
from tests.unit.stats.logged import RUN

FEWEST_READS = 5


def main(path: str, seconds: float) -> dict[str, object]:
    """Read everything a dashboard reads, and a few times also if the machine is slow."""
    errors: list[str] = []
    reads, last_epoch = 0, 0
    deadline = time.monotonic() + seconds
    reader = StatsReader(path)
    while time.monotonic() < deadline or (reads < FEWEST_READS and not errors):
        try:
            epochs = [row["epoch"] for row in reader.epochs(RUN)]
            reader.latest(RUN)
            reader.metric(RUN, "loss")
            reader.rows_after(RUN, max(0, last_epoch - 5), 100)
            reader.sql("SELECT count(*) FROM metrics")
        except (StatsError, OSError) as error:
            errors.append(str(error))
            continue
        if epochs != list(range(1, len(epochs) + 1)) or len(epochs) < last_epoch:
            errors.append(f"epochs {epochs[-3:]} after {last_epoch}")
        reads, last_epoch = reads + 1, len(epochs)
    return {"reads": reads, "errors": errors[:5], "epochs": last_epoch}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], float(sys.argv[2]))))
