"""Compare PPO in hookloop with Stable-Baselines3, a CleanRL-style script, a lean torch loop and rejax.

Run ``python benchmarks/ppo.py [--quick] [--only BENCH] [--json FILE]`` with hookloop importable. Peers:
``pip install stable-baselines3 envpool`` here, and ``pip install jax rejax 'gymnax<1'`` here or in another
environment whose interpreter is named by ``--jax-python``. What is not installed is reported as such.

Benches:

- ``small``: CartPole-v1 on Gymnasium's sync vector environment, 8 x 128, 4 minibatches, 4 epochs.
- ``wide-64`` and ``wide-256``: the same on Gymnasium's native vector environment, 64 x 128 and 256 x 64.
- ``overhead``: our trainer with the hooks of ``hookloop train`` against a bare loop over the same policy, loss and
  optimizer, whose final weights must be equal bit by bit.
- ``time-to-score``: process start until the last 100 training episodes return 475 on average, ten seeds.
- ``quality``: returns at equal env steps against published figures. Not part of ``--quick``.

What a figure contains. Contenders train in processes of their own and take turns of equal length, A B B A; see
``_ppo_race.py``. Steps are real transitions: nobody counts autoreset filler rows. A figure is void unless the same
run ends above its return gate. With one thread every contender is pinned to the same core. Ratios are medians over
turns with a bootstrapped 95 % interval; "by min" compares the fastest turns, "by CPU" the CPU time per step, which a
busy machine disturbs least. The noise floor is the same ratio between two processes of hookloop. ``built`` is
the time from process start to the first update, imports and compilation included; ``warm-up`` is what the first turn
took above a later one. Ratios depend on the processor: without AVX-512 a tanh costs ten times as much.

What is not equal, because it cannot be set: Stable-Baselines3 does not halve its squared value error; rejax clips
the value loss, clips gradients per element, does not bootstrap cut-off episodes and runs its environment compiled.
The CleanRL-style loop runs on the sync environment in every bench, as such scripts do. Stable-Baselines3 runs on
its ``DummyVecEnv`` in ``small``; in the wide benches it runs on the native environment through a lean adapter, and
its ``DummyVecEnv`` is measured as well. ``lean`` uses the environments of the bench, ``lean-native`` the native ones.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from _measure import Ratio, Target, describe_environment, print_environment, print_targets, write_json
from _ppo_catalog import OVERHEAD, QUALITY, SAME_WORK, ZOO_TO_SCORE, Published, shortened
from _ppo_ours import run_recipe
from _ppo_race import Attempt, Entry, Race, alternate, compare, race, run_alone

OURS, OURS_AGAIN, UNWATCHED, BARE = "hookloop", "hookloop again", "hookloop-unwatched", "bare loop"
SB3, SB3_DUMMY, CLEANRL, REJAX = "sb3", "sb3-dummy", "cleanrl-style", "rejax"
LEAN, LEAN_NATIVE = "lean", "lean-native"
PACKAGES = {
    "hookloop": "hookloop",
    "torch": "torch",
    "numpy": "numpy",
    "gymnasium": "gymnasium",
    "stable-baselines3": "stable_baselines3",
    "envpool": "envpool",
}
JAX_PACKAGES = ("jax", "jaxlib", "rejax", "gymnax", "flax")
ENTRIES = {
    "small": (OURS, OURS_AGAIN, SB3, CLEANRL, LEAN, LEAN_NATIVE, REJAX),
    "wide-64": (OURS, OURS_AGAIN, SB3, SB3_DUMMY, CLEANRL, LEAN, REJAX),
    "wide-256": (OURS, OURS_AGAIN, SB3, SB3_DUMMY, CLEANRL, LEAN, REJAX),
}
QUICK_ENTRIES = {"small": (OURS, OURS_AGAIN, SB3, CLEANRL), "wide-256": (OURS, OURS_AGAIN, SB3)}
CONTENDER_OF = {OURS_AGAIN: OURS, BARE: "bare"}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    quick: bool
    benches: Sequence[str]
    threads: Sequence[int]
    contenders: Sequence[str]
    seeds: Sequence[int]
    env_ids: Sequence[str]
    jax_python: str
    json: Path | None

    def wants(self, contender: str) -> bool:
        return not self.contenders or contender in self.contenders

    def entries(self, labels: Sequence[str]) -> list[Entry]:
        entries = [Entry(label, CONTENDER_OF.get(label, label)) for label in labels]
        return [entry for entry in entries if self.wants(entry.contender)]


@dataclass(frozen=True, slots=True)
class Section:
    """A bench's part of the report."""

    rows: list[dict[str, object]]
    targets: list[Target]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benches asked for, print their tables and the targets, write the JSON report."""
    options = parse(arguments)
    environment = describe_environment(PACKAGES)
    environment["packages"] |= jax_versions(options.jax_python)
    environment["vector_extension"] = vector_extension()
    print_environment(environment)
    sections = {bench: BENCHES[bench](bench, options) for bench in options.benches}
    targets = [target for section in sections.values() for target in section.targets]
    print_targets(targets)
    if options.json:
        rows = {bench: section.rows for bench, section in sections.items()}
        verdicts = [target.as_row() for target in targets]
        write_json(options.json, {"environment": environment, "benches": rows, "targets": verdicts})


def parse(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(description="PPO in hookloop and in its peers: speed, overhead, time to score.")
    parser.add_argument("--quick", action="store_true", help="small and wide-256, one thread, under a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as well")
    parser.add_argument(
        "--only", action="append", choices=BENCHES, metavar="BENCH", help=f"one of {', '.join(BENCHES)}"
    )
    parser.add_argument("--threads", action="append", type=int, choices=(1, 2), help="thread count of the races")
    parser.add_argument("--contender", action="append", help="race only these; may be given more than once")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds for time-to-score and quality")
    parser.add_argument(
        "--env", action="append", choices=[published.work.env_id for published in QUALITY], help="quality in these only"
    )
    parser.add_argument("--jax-python", default=os.environ.get("JAX_PYTHON", sys.executable), metavar="PATH")
    parsed = parser.parse_args(arguments)
    return Options(
        quick=parsed.quick,
        benches=parsed.only or list(QUICK_ENTRIES if parsed.quick else BENCHES),
        threads=parsed.threads or ((1,) if parsed.quick else (1, 2)),
        contenders=parsed.contender or (),
        seeds=range(1, parsed.seeds + 1),
        env_ids=parsed.env or (),
        jax_python=parsed.jax_python,
        json=parsed.json,
    )


def vector_extension() -> str | None:
    """Return the widest vector extension of the processor, where the system tells."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return None
    return next((name for name in ("avx512f", "avx2", "asimd") if name in flags), None)


def jax_versions(python: str) -> dict[str, str | None]:
    """Ask the interpreter that runs rejax for its versions."""
    script = (
        "import json, sys\nfrom importlib.metadata import distributions\n"
        "print(json.dumps({d.name.lower(): d.version for d in distributions()}))"
    )
    try:
        answer = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return dict.fromkeys(JAX_PACKAGES)
    installed = json.loads(answer.stdout)
    return {name: installed.get(name) for name in JAX_PACKAGES}


def bench_same_work(bench: str, options: Options) -> Section:
    """Race everybody over the same work, once per thread count."""
    labels = QUICK_ENTRIES.get(bench, ENTRIES[bench]) if options.quick else ENTRIES[bench]
    section = Section([], [])
    for threads in options.threads:
        work = replace(shortened(SAME_WORK[bench]) if options.quick else SAME_WORK[bench], threads=threads)
        raced = race(work, options.entries(labels), jax_python=options.jax_python, builds_at_once=options.quick)
        print_race(raced)
        section.rows.append(raced.as_row())
        section.targets.extend(same_work_targets(bench, raced))
    return section


def same_work_targets(bench: str, raced: Race) -> list[Target]:
    """Compare our speed with what we promise."""
    threads = raced.work.threads

    def target(peer: str, limit: float) -> Target:
        speedup = raced.speedup(OURS, peer)
        promise = f"{bench}, {count(threads, 'thread')}: steps/s over {peer}"
        return Target(promise, speedup and speedup.ratio, Ratio(limit, limit), is_upper_limit=False)

    limits = {SB3: 3.0, SB3_DUMMY: 3.0} if threads == 1 else {REJAX: 1.0}
    if bench == "small":
        limits = {SB3: 2.0, CLEANRL: 2.0}
    raced_labels = {result.entry.label for result in raced.results}
    return [target(peer, limit) for peer, limit in limits.items() if peer in raced_labels]


def print_race(raced: Race) -> None:
    """Print one row per contender, ratios to Stable-Baselines3, and the noise floor."""
    work = raced.work
    print(
        f"\n{work.name}, {count(work.threads, 'thread')}: {work.env_id}, {work.num_envs} {work.env_kind} envs x "
        f"{work.horizon}, {count(work.minibatches, 'minibatch', 'es')}, {count(work.epochs, 'epoch')}, "
        f"{work.total_env_steps:,} env steps in {work.turns} turns, void below a return of {work.gate_return:g}"
    )
    print(
        f"{'contender':16}{'steps/s':>10}{'best':>10}{'CPU us/step':>13}{'x sb3':>8}{'95 % interval':>16}"
        f"{'by CPU':>8}{'built s':>9}{'warm-up s':>11}{'return':>8}"
    )
    for result in raced.results:
        label = result.entry.label
        if result.problem or not result.outcome:
            print(f"{label:16}{result.problem or 'did not finish'}")
            continue
        speedup = raced.speedup(label, SB3)
        against = " " * 32
        if speedup:
            interval = f"{speedup.low:.2f}-{speedup.high:.2f}"
            against = f"{speedup.ratio.by_median:8.2f}{interval:>16}{speedup.by_cpu:8.2f}"
        print(
            f"{label:16}{result.env_steps_per_second:10,.0f}{result.best_env_steps_per_second:10,.0f}"
            f"{result.cpu_microseconds_per_env_step:13.2f}{against}{result.build_seconds:9.1f}"
            f"{result.warm_up_seconds:11.2f}{result.outcome.mean_return:8.1f}"
            f"{'' if result.passes(work) else '  void: below the gate'}  {result.outcome.note}"
        )
    if noise := raced.speedup(OURS_AGAIN, OURS):
        print(
            f"noise floor: {OURS_AGAIN} is {noise.ratio.by_median:.3f} times as fast as {OURS} "
            f"[{noise.low:.3f}, {noise.high:.3f}], {noise.ratio.by_min:.3f} by the fastest turns, "
            f"{noise.by_cpu:.3f} by CPU time"
        )


def bench_overhead(bench: str, options: Options) -> Section:
    """Race our trainer with the command's hooks against a bare loop of the same kernels."""
    section = Section([], [])
    for work, limit in OVERHEAD:
        raced = race(work, options.entries((BARE, UNWATCHED, OURS, OURS_AGAIN)), jax_python=options.jax_python)
        print_race(raced)
        bare, ours = raced.find(BARE), raced.find(OURS)
        ratio = None
        if bare and ours:
            overhead = compare(bare, ours)
            ratio = overhead.ratio
            print(
                f"overhead: {ratio.by_median:.3f} times the bare time [{overhead.low:.3f}, {overhead.high:.3f}], "
                f"{ratio.by_min:.3f} by the fastest turns, {overhead.by_cpu:.3f} by CPU time"
            )
        unwatched = raced.find(UNWATCHED)
        if unwatched and ours:
            watching = compare(unwatched, ours)
            print(
                f"all hooks of the command: {watching.ratio.by_median:.3f} times the time without "
                f"[{watching.low:.3f}, {watching.high:.3f}], {watching.ratio.by_min:.3f} by the fastest turns, "
                f"{watching.by_cpu:.3f} by CPU time"
            )
            section.targets.append(Target(f"{work.name}: all hooks over none", watching.ratio, Ratio(1.02, 1.02)))
        if bare and ours and bare.outcome.loss_digest != ours.outcome.loss_digest:
            print(f"{work.name}: the weights differ, so this is no comparison of overheads")
            ratio = None
        section.rows.append(raced.as_row())
        section.targets.append(Target(f"{work.name}: time over the bare loop", ratio, Ratio(limit, limit)))
    return section


def bench_time_to_score(bench: str, options: Options) -> Section:
    """Time our recipe and Stable-Baselines3 with rl-zoo's settings until the same score, process start included."""

    work = replace(ZOO_TO_SCORE, threads=options.threads[0])

    def run_sb3(seed: int) -> Attempt:
        return run_alone(Entry(SB3, SB3), replace(work, seed=seed), jax_python=options.jax_python)

    runs = {OURS: partial(run_recipe, threads=work.threads), SB3: run_sb3}
    attempts = alternate([run for label, run in runs.items() if options.wants(label)], options.seeds)
    target_return = ZOO_TO_SCORE.target_return or 0.0
    medians = {label: print_attempts(label, attempts, target_return) for label in (OURS, SB3)}
    ours, theirs = medians[OURS], medians[SB3]
    ratio = Ratio(ours[0] / theirs[0], ours[1] / theirs[1]) if ours and theirs else None
    target = Target("time to 475 over sb3 with rl-zoo's settings", ratio, Ratio(0.2, 0.2))
    return Section([asdict(attempt) for attempt in attempts], [target])


def print_attempts(label: str, attempts: Sequence[Attempt], target_return: float) -> tuple[float, float] | None:
    """Print all seeds of one contender; return its fastest and its median seconds if most seeds succeeded."""
    own = [attempt for attempt in attempts if attempt.label == label]
    reached = [attempt for attempt in own if attempt.outcome and attempt.outcome.mean_return >= target_return]
    print(f"\n{label}: {len(reached)} of {len(own)} seeds reached {target_return:g}")
    for attempt in own:
        if attempt.outcome:
            outcome = attempt.outcome
            end = f"{outcome.env_steps:,} env steps, return {outcome.mean_return:.1f}"
            print(f"  seed {attempt.seed:<3}{attempt.seconds:8.1f} s, {end}")
        else:
            print(f"  {attempt.problem}")
    if 2 * len(reached) <= len(own):
        return None
    # A seed that missed the score took longer than any that reached it.
    seconds = sorted(attempt.seconds for attempt in reached) + [float("inf")] * (len(own) - len(reached))
    median = statistics.median(seconds)
    print(f"  median {median:.1f} s, fastest {seconds[0]:.1f} s")
    return seconds[0], median


def bench_quality(bench: str, options: Options) -> Section:
    """Train for a fixed number of env steps and compare the returns with published figures."""
    section = Section([], [])
    for published in (one for one in QUALITY if not options.env_ids or one.work.env_id in options.env_ids):
        for entry in options.entries((OURS, SB3) if SB3 in options.contenders else (OURS,)):
            attempts = train_all_seeds(entry, published, options)
            section.rows.extend({"work": published.work.name, **asdict(attempt)} for attempt in attempts)
            returns = [returns_of(attempt, published) for attempt in attempts if attempt.outcome]
            print_quality(entry, published, returns, problem=attempts[-1].problem)
            # As a difference, because returns may be negative: how far the mean lies above the lowest that is level.
            above = statistics.mean(returns) - published.lowest_level_return if returns else None
            ratio = None if above is None else Ratio(above, above)
            promise = f"{published.work.name}, {entry.label}: above level"
            section.targets.append(Target(promise, ratio, Ratio(0.0, 0.0), is_upper_limit=False))
    return section


def train_all_seeds(entry: Entry, published: Published, options: Options) -> list[Attempt]:
    def run(seed: int) -> Attempt:
        return run_alone(entry, replace(published.work, seed=seed), jax_python=options.jax_python)

    return alternate([run], options.seeds)


def returns_of(attempt: Attempt, published: Published) -> float:
    """Return the figure of a run that is comparable with the published one."""
    assert attempt.outcome
    is_greedy = published.work.greedy_episodes and attempt.outcome.greedy_return is not None
    return attempt.outcome.greedy_return if is_greedy else attempt.outcome.mean_return


def print_quality(entry: Entry, published: Published, returns: Sequence[float], *, problem: str) -> None:
    """Print the mean over seeds beside the published figure."""
    print(f"\n{published.work.name}: {published.work.env_id} after {published.work.total_env_steps:,} env steps")
    print(f"  published {published.mean:g} +/- {published.spread:g} ({published.source})")
    if not returns:
        print(f"  {entry.label}: {problem}")
        return
    deviation = statistics.stdev(returns) if len(returns) > 1 else 0.0
    print(f"  {entry.label}: {statistics.mean(returns):.1f} +/- {deviation:.1f} over {count(len(returns), 'seed')}")


def count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"


BENCHES: dict[str, Callable[[str, Options], Section]] = {
    "small": bench_same_work,
    "wide-64": bench_same_work,
    "wide-256": bench_same_work,
    "overhead": bench_overhead,
    "time-to-score": bench_time_to_score,
    "quality": bench_quality,
}

if __name__ == "__main__":
    main()
