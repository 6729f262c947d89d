"""Kills a process that writes statistics, again and again, and looks at what it leaves behind.

Run as a script with a folder, a number of kills and a seed. The parent imports everything once and forks the writers,
so that a life takes milliseconds. Prints what was found as JSON.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from hookloop.stats import StatsReader, StatsStore
from tests.unit.stats.logged import RUN, live_tables, log_epoch, reading

LONGEST_WAIT_SECONDS = 60.0
POINTS_PER_EPOCH = 6


def write(path: Path, begin: int, acknowledged: int, batch_rows: int) -> None:
    """Live as a trainer does: resume, log epochs, flush before each checkpoint, and say that it is safe."""
    with StatsStore(path, run_id=RUN, batch_rows=batch_rows, flush_seconds=0.002) as store:
        store.begin_attempt(1, reading(begin), resumed_from=begin)
        epoch = begin
        while True:
            epoch += 1
            log_epoch(store, epoch)
            if epoch % 3 == 0:
                store.flush()
                os.write(acknowledged, f"{epoch}\n".encode())


def live_and_die(path: Path, begin: int, random_numbers: random.Random) -> int:
    """Run one writer until it is killed; return the last epoch it has promised."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        try:
            write(path, begin, sending, random_numbers.choice([1, 7, 50]))
        finally:
            os._exit(1)
    os.close(sending)
    # Half of the kills hit the opening and the resume, half the middle of the work.
    if random_numbers.random() < 0.5:
        select.select([receiving], [], [], LONGEST_WAIT_SECONDS)
        time.sleep(random_numbers.uniform(0, 0.02))
    else:
        time.sleep(random_numbers.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(receiving) as pipe:
        promised = [int(line) for line in pipe.read().split("\n") if line]
    return max([begin, *promised])


def faults_of(path: Path, promised: int) -> list[str]:
    """Return what is wrong with a database after a kill."""
    if not path.exists():
        return [] if promised == 0 else ["the database is gone"]
    connection = sqlite3.connect(path)
    found = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.close()
    if "schema_info" not in tables:
        return found if promised == 0 else [*found, "the tables are gone"]
    with StatsReader(path) as reader:
        epochs = [row["epoch"] for row in reader.epochs(RUN)]
        counted = reader.sql(
            f"SELECT after_epoch, count(*) AS points FROM metrics WHERE after_epoch < {len(epochs)} GROUP BY 1", 1 << 20
        )
    if epochs != list(range(1, len(epochs) + 1)):
        found.append(f"a gap among the epochs {epochs}")
    if len(epochs) < promised:
        found.append(f"{promised} epochs were promised and {len(epochs)} are there")
    if [row["points"] for row in counted] != [POINTS_PER_EPOCH] * len(epochs):
        found.append("an epoch is not whole")
    return found


def main(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kill writers, then let one finish, and compare with a run that nobody killed."""
    random_numbers = random.Random(seed)
    path = folder / "stats.sqlite"
    promised, faults, resumes = 0, [], 0
    for _ in range(kills):
        promised_before, promised = promised, live_and_die(path, promised, random_numbers)
        resumes += promised > promised_before
        faults += faults_of(path, promised)
    for target, begin in ((path, promised), (folder / "whole.sqlite", 0)):
        with StatsStore(target, run_id=RUN) as store:
            store.begin_attempt(1, reading(begin))
            for epoch in range(begin + 1, promised + 4):
                log_epoch(store, epoch)
    is_equal = live_tables(path) == live_tables(folder / "whole.sqlite")
    return {"kills": kills, "lives_with_progress": resumes, "epochs": promised, "faults": faults, "is_equal": is_equal}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
