"""Compare what a supervised trainer adds to a training step: hookloop, a bare loop, and the trainers people use today.

Run ``python benchmarks/supervised.py [--quick] [--only WORK] [--rounds N] [--json FILE]`` with hookloop importable;
peers: ``pip install lightning transformers accelerate pytorch-ignite``. Those that are not installed are left out.

Works. ``near-empty``: a 4-2 linear layer, batches of 8 that are there already, SGD; what is left of a step is the
trainer. ``784-256-10``: a network on 12,800 samples in memory, batches of 128 in a new order each epoch, fused AdamW;
loading is part of it, and hookloop's is its own. ``gpt``: nanoGPT's settings for a CPU (4 layers, 4 heads, width 128,
block 64, batch 12, gradients clipped) on random text. One thread.

What a figure contains. Every contender trains in a process of its own, all on one core, and waits for its turn
between two steps (in the network's forward, which counts for all alike); a turn is a fixed number of steps with all
that happens between them, ends of epochs included. Figures are CPU time of the whole process: of a shared machine,
wall time says more about the neighbours; the wall time of the fastest turn stands beside it. "By min" compares the
fastest turns, "by median" is the median over rounds of what the contender took more than the bare loop in the same
round. The noise floor is the bare loop a second time. A target is met only if it is met by both.

Equal work. The losses of the first 200 steps must be those of the bare loop, to the bit, wherever the batches are the
same, or nothing is printed. ``784-256-10`` compares hookloop with a loop over slices of the same order: DataLoader has
another one.

Settings of the others, as documented for speed: Lightning ``Trainer(barebones=True)``; transformers without logging,
bars, reports, saves and the look for NaN; Accelerate ``prepare`` and ``backward``; Ignite an ``Engine`` alone.
hookloop without hooks still keeps the mean loss, the clocks, and can stop and resume at any batch; its default hooks
are validation, metrics, and the gradient monitor, which reads the norm of the gradients before every step.

Set-up is CPU time from ``import torch`` being done to the first step: importing the trainer, building it, its optimizer
and its data.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from _measure import Ratio, Target, describe_environment, print_environment, print_targets, write_json
from _supervised_race import Entry, Race
from _supervised_work import WORKS

BARE, AGAIN, CLIPPED = "bare loop", "bare loop again", "bare loop, clipped"
BY_HAND, SLICES = "bare loop, gradients dropped by hand", "bare loop, slices by hand"
OURS, WATCHED, OURS_CLIPPED = "hookloop, no hooks", "hookloop", "hookloop, clipped"
PEERS = {"Lightning": "lightning", "transformers": "transformers", "Accelerate": "accelerate", "Ignite": "ignite"}
PACKAGES = {"hookloop": "hookloop", "torch": "torch", "lightning": "lightning", "transformers": "transformers",
            "accelerate": "accelerate", "pytorch-ignite": "ignite"}  # fmt: skip
ENTRIES = {
    "near-empty": {BARE: "bare", AGAIN: "bare", BY_HAND: "bare-by-hand", OURS: "hookloop", WATCHED: "hookloop-watched",
                   CLIPPED: "bare-clipped", OURS_CLIPPED: "hookloop-clipped", **PEERS},
    "784-256-10": {BARE: "bare", AGAIN: "bare", SLICES: "bare-slices", OURS: "hookloop", WATCHED: "hookloop-watched",
                   **PEERS},
    "gpt": {BARE: "bare", AGAIN: "bare", OURS: "hookloop", WATCHED: "hookloop-watched", **PEERS},
}  # fmt: skip
ROUNDS = {"near-empty": 200, "784-256-10": 60, "gpt": 160}
QUICK_ROUNDS = {"near-empty": 50, "784-256-10": 12, "gpt": 50}
BASELINES = {OURS_CLIPPED: CLIPPED}
MICROSECONDS_PER_MS = 1_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Race every work, check the losses, print the tables and the targets, write the JSON report."""
    parser = argparse.ArgumentParser(description="Cost of a supervised training step, in hookloop and in its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer turns: two minutes, noisier figures")
    parser.add_argument("--only", choices=list(WORKS), help="one work alone")
    parser.add_argument("--rounds", type=int, metavar="N", help="turns of each contender, for every work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as well")
    options = parser.parse_args(arguments)
    environment = describe_environment(PACKAGES)
    print_environment(environment)
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    races: dict[str, Race] = {}
    for name in [options.only] if options.only else WORKS:
        races[name] = race = Race(WORKS[name], list(ENTRIES[name].items()))
        race.run(options.rounds or rounds[name])
        check_losses(race)
        print_race(race)
    targets = [target for name, race in races.items() for target in TARGETS[name](race)]
    print_targets(targets)
    if options.json:
        rows = [race.as_row() for race in races.values()]
        targets_rows = [target.as_row() for target in targets]
        write_json(options.json, {"environment": environment, "races": rows, "targets": targets_rows})


def check_losses(race: Race) -> None:
    """Stop unless everybody who was given the same batches has the same losses."""
    own_order = race.work.name == "784-256-10"
    for entry in race.entries:
        is_ours = entry.contender.startswith("hookloop")
        model = BASELINES.get(entry.label, (SLICES if own_order else BARE))
        expected = race[model]
        if not entry.cpu or expected is None or (own_order and not is_ours) or entry.label == CLIPPED:
            continue
        if entry.losses != expected.losses:
            wrong = next(
                i for i, pair in enumerate(zip(entry.losses, expected.losses, strict=True)) if len({*pair}) > 1
            )
            raise RuntimeError(f"{race.work.name}: {entry.label} has another loss than {model} from step {wrong} on.")


def print_race(race: Race) -> None:
    """Print one line for each contender; the losses have been compared already."""
    columns = (("us a step", 10), ("wall", 10), ("over bare", 11), ("by median", 11), ("set-up s", 10), ("loss", 9))
    print(f"\n{race.work.name:38}" + "".join(f"{title:>{width}}" for title, width in columns))
    for entry in race.entries:
        base = race[BASELINES.get(entry.label, BARE)]
        if not entry.cpu or base is None:
            print(f"{entry.label:38}{entry.problem:>10}")
            continue
        over = entry.over(base)
        figures = f"{min(entry.cpu):10.1f}{min(entry.wall):10.1f}{over.by_min:11.1f}{over.by_median:11.1f}"
        print(f"{entry.label:38}{figures}{entry.setup_seconds:10.2f}{entry.losses[-1]:9.4f}")


def over(race: Race, label: str, base: str = BARE) -> Ratio | None:
    entry, other = race[label], race[base]
    return entry.over(other) if entry and other else None


def per(race: Race, label: str, base: str = BARE) -> Ratio | None:
    entry, other = race[label], race[base]
    return entry.per(other) if entry and other else None


def near_empty_targets(race: Race) -> list[Target]:
    """List what is promised where nothing but the trainer takes time."""
    ours, watched = race[OURS], race[WATCHED]
    call = watched.over(ours) if ours and watched else None
    call = Ratio(call.by_min / MICROSECONDS_PER_MS, call.by_median / MICROSECONDS_PER_MS) if call else None
    return [
        Target("us over the bare loop, no hooks", over(race, OURS), Ratio(5, 5)),
        Target("us over a loop that drops gradients by hand", over(race, OURS, BY_HAND), Ratio(5, 5)),
        Target("us over the bare loop, default hooks", over(race, WATCHED), Ratio(15, 15)),
        Target("the same, both clipping", over(race, OURS_CLIPPED, CLIPPED), Ratio(15, 15)),
        *(
            Target(f"{peer}'s overhead, in hookloop's", _times(race[peer], race), Ratio(10, 10), is_upper_limit=False)
            for peer in ("Lightning", "transformers")
        ),
        Target("ms for a call of the gradient monitor", call, Ratio(0.1, 0.1)),
    ]


def _times(peer: Entry | None, race: Race) -> Ratio | None:
    """Return a peer's overhead in ours, over the loop that drops gradients by hand: over the other we have none."""
    ours, base = race[OURS], race[BY_HAND]
    if not peer or not ours or not base:
        return None
    mine, its = ours.over(base), peer.over(base)
    return Ratio(its.by_min / max(mine.by_min, 0.1), its.by_median / max(mine.by_median, 0.1))


def network_targets(race: Race) -> list[Target]:
    """List what is promised with data in memory."""
    ours = race[WATCHED]
    setup = Ratio(ours.setup_seconds, ours.setup_seconds) if ours else None
    return [
        Target("784-256-10 over the bare loop with DataLoader", per(race, WATCHED), Ratio(1, 1)),
        Target("784-256-10, no hooks, over slices by hand", per(race, OURS, SLICES), Ratio(1.01, 1.01)),
        Target("s of set-up after torch is imported", setup, Ratio(1, 1)),
    ]


def gpt_targets(race: Race) -> list[Target]:
    """List what is promised for a model whose step takes long."""
    return [Target("gpt over the bare loop, default hooks", per(race, WATCHED), Ratio(1.01, 1.01))]


TARGETS = {"near-empty": near_empty_targets, "784-256-10": network_targets, "gpt": gpt_targets}

if __name__ == "__main__":
    main()
