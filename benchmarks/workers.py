"""Measure what workers are worth: environment steps per second with and without them, and against what others offer.

Run ``python benchmarks/workers.py [--quick] [--seconds S] [--json FILE]`` with hookloop importable; SB3 and Ray take
part where they are installed.

Eight environments, a policy of two layers of 64, rollouts of 32 steps. A step computes for 10 us, 100 us or 1 ms, or
sleeps for 1 ms; its time varies by a half, evenly (``_workers_work.py``). Pools get whole rollouts of one slot as a
task, four slots of two environments (eight of one where steps sleep), and act where the environments are. The vector
environments of gymnasium (with shared memory) and SB3 have a process for each environment, and act in the calling one.
All contenders take turns; ``again`` is inline a second time, and what differs between the two is noise.

The last column is the time of the processor for a step, of all processes together. It hardly depends on what else the
machine does; steps per second do, and on a busy machine they say little.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import psutil
import torch
from _measure import Ratio, Target, describe_environment, print_environment, print_targets, write_json
from _workers_contenders import Contender, gymnasium_contender, pool_contender, ray_contender, sb3_contender
from _workers_work import Collector, Keeper, Load, network

from hookloop.pools import Task, TaskKey, choose_workers, gather
from hookloop.pools.measuring import measure_costs, usable_cores
from hookloop.pools.process import ProcessPool

ENVS = 8
STEPS = 32
LOADS = (
    Load("10 us computing", 10e-6),
    Load("100 us computing", 100e-6),
    Load("1 ms computing", 1e-3),
    Load("1 ms sleeping", 1e-3, sleeps=True),
)
PEERS = ("gymnasium async", "SB3 SubprocVecEnv", "ray actors")


Rates = dict[str, list[float]]


def processor_seconds() -> float:
    """Return the processor time of this process and of all that it has started and that still run."""
    me = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (me, *me.children(recursive=True)))


def rates(contenders: list[Contender], *, seconds: float) -> tuple[Rates, dict[str, float]]:
    """Let the contenders collect in turn; return steps per second of each turn, and processor seconds per step."""
    found: Rates = {contender.name: [] for contender in contenders}
    used: dict[str, list[float]] = {contender.name: [0.0, 0.0] for contender in contenders}
    for contender in contenders:
        contender.collect()
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(found["inline"]) < 5:
        for contender in contenders:
            used_before = processor_seconds()
            started = time.perf_counter()
            rollouts = 0
            while rollouts < 1 or time.perf_counter() - started < 0.1:
                contender.collect()
                rollouts += 1
            found[contender.name].append(rollouts * ENVS * STEPS / (time.perf_counter() - started))
            used[contender.name][0] += processor_seconds() - used_before
            used[contender.name][1] += rollouts * ENVS * STEPS
    return found, {name: processor / steps for name, (processor, steps) in used.items()}


def race(load: Load, *, seconds: float) -> tuple[Rates, dict[str, float], int]:
    """Return rates and processor time of all contenders under this load, and how many workers are chosen."""
    slots = ENVS if load.sleeps else ENVS // 2
    sizes = {"envs": ENVS, "slots": slots, "steps": STEPS}
    costs = measure_costs(lambda: Collector(load, ENVS // slots), {"seed": 0, "steps": STEPS}, network().state_dict())
    chosen = choose_workers(costs, tasks=slots, cores=usable_cores()).workers
    contenders = [
        pool_contender(0, load, **sizes),
        pool_contender(0, load, **sizes, name="again"),
        *(pool_contender(workers, load, **sizes) for workers in ((1, 2, 8) if load.sleeps else (1, 2))),
        pool_contender(chosen, load, **sizes, name="automatic"),
        gymnasium_contender(load, envs=ENVS, steps=STEPS),
        sb3_contender(load, envs=ENVS, steps=STEPS),
        ray_contender(load, **sizes, workers=2),
    ]
    present = [contender for contender in contenders if contender]
    try:
        return (*rates(present, seconds=seconds), chosen)
    finally:
        for contender in present:
            contender.close()


def ratio(found: Rates, one: str, other: str) -> Ratio:
    """Compare rates: the best of each, and the medians."""
    return Ratio(max(found[one]) / max(found[other]), statistics.median(found[one]) / statistics.median(found[other]))


def targets_of(load: Load, found: Rates) -> list[Target]:
    def at_least(promise: str, one: str, other: str, limit: float) -> Target:
        return Target(f"{load.name}: {promise}", ratio(found, one, other), Ratio(limit, limit), is_upper_limit=False)

    # A twentieth is left to noise: where the choice is inline, it is inline against inline.
    targets = [at_least("automatic / inline", "automatic", "inline", 0.95)]
    if load.seconds >= 1e-3:
        targets.append(at_least("2 workers / 1 worker", "2 workers", "1 worker", 1.8))
    if load.seconds >= 100e-6:
        peers = [peer for peer in PEERS if peer in found]
        best = max(peers, key=lambda peer: statistics.median(found[peer]))
        ours = "8 workers" if load.sleeps else "2 workers"
        targets.append(at_least(f"{ours} / {best}", ours, best, 1.2))
    return targets


def publication(repeats: int) -> tuple[list[float], list[float]]:
    """Return how long it takes to publish 20 MB, and until both of two workers have taken them, in milliseconds."""
    weights = {f"layer{number}": torch.randn(500, 1000) for number in range(10)}
    pool = ProcessPool(Keeper, workers=2)
    published: list[float] = []
    taken: list[float] = []
    for version in range(repeats + 3):
        started = time.perf_counter()
        pool.publish(version, weights)
        published.append(1e3 * (time.perf_counter() - started))
        gather(pool, [Task(TaskKey(slot, version), slot) for slot in range(2)])
        taken.append(1e3 * (time.perf_counter() - started))
    pool.close()
    return published[3:], taken[3:]


def idle_processor_share(seconds: float) -> float:
    """Return how much of a core two workers use that have nothing to do."""
    pool = ProcessPool(Keeper, workers=2)
    pool.publish(0, {"weight": torch.zeros(1)})
    while set(pool.health().phases.values()) != {"waiting"}:
        time.sleep(0.01)
    processes = [psutil.Process(pid) for pid in pool.pids]

    def used() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    before = used()
    time.sleep(seconds)
    share = (used() - before) / seconds
    pool.close()
    return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few seconds for each load: does it run?")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each load")
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    seconds = 3.0 if arguments.quick else arguments.seconds
    torch.set_num_threads(1)
    packages = {"gymnasium": "gymnasium", "stable-baselines3": "stable_baselines3", "ray": "ray", "torch": "torch"}
    environment = describe_environment(packages) | {"pinned_to_one_core": False}
    print_environment(environment)
    targets: list[Target] = []
    report: dict[str, Any] = {}
    for load in LOADS:
        found, processor, chosen = race(load, seconds=seconds)
        print(
            f"\n{load.name}, automatic: {chosen} workers\n{'steps/s, median':>40}{'best':>10}{'processor us/step':>20}"
        )
        for name, values in found.items():
            print(f"  {name:24}{statistics.median(values):14.0f}{max(values):10.0f}{1e6 * processor[name]:20.1f}")
        targets += targets_of(load, found)
        report[load.name] = {"automatic_workers": chosen, "steps_per_s": found, "processor_s_per_step": processor}
    published, taken = publication(10 if arguments.quick else 50)
    for name, values in (("published", published), ("taken by both", taken)):
        print(f"20 MB of weights, {name}: {min(values):.1f} ms at best, {statistics.median(values):.1f} ms median")
    published_ratio = Ratio(min(taken) / 20.0, statistics.median(taken) / 20.0)
    targets.append(Target("20 MB taken by 2 workers / 20 ms", published_ratio, Ratio(1.0, 1.0)))
    share = idle_processor_share(2.0)
    targets.append(Target("idle workers, share of a core", Ratio(share, share), Ratio(0.01, 0.01)))
    print_targets(targets)
    if arguments.json:
        rows = {"environment": environment, "loads": report, "published_ms": published, "taken_ms": taken}
        write_json(arguments.json, {**rows, "idle_share": share, "targets": [target.as_row() for target in targets]})


if __name__ == "__main__":
    main()
