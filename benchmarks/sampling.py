"""Compare drawing symbols with a cache of keys and values against a loop that reads everything again.

Run ``python benchmarks/sampling.py [--quick] [--json FILE]`` with hookloop importable; one thread, one core.

Both contenders have the same model with the same weights and draw 64 symbols after a prompt of 4, for every row of a
batch. The loop without a cache is ``GPT.continue_text``: for each symbol one forward over all symbols so far. With a
cache it is ``complete``, which also gives the log-probability of every symbol. The end is never drawn (a bias
sees to that in both), so no row stops early, which would be in the cache's favour. Rounds alternate between the
contenders. The loop with a cache runs as two copies; the spread between them is the noise floor.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter_ns

import torch
from _measure import (
    Ratio,
    Target,
    Timing,
    describe_environment,
    middle,
    noise_floor,
    print_environment,
    print_targets,
    undisturbed,
    write_json,
)

from hookloop.sequences.sampling import complete
from hookloop.sequences.vocabulary import END
from hookloop.supervised.models.gpt import GPT

PROMPT, LENGTH, SYMBOLS = 4, 64, 40
SIZES = {"small": (2, 4, 64), "charlm": (4, 4, 128)}
BATCHES = (1, 16, 64)
LIMIT = 5.0


def make_model(layers: int, heads: int, width: int) -> GPT:
    """Return a model that never draws its end, by a direction in which all states agree and the end is far off."""
    torch.manual_seed(0)
    model = GPT(SYMBOLS, PROMPT + LENGTH, layers=layers, heads=heads, width=width).eval()
    with torch.no_grad():
        model.norm.bias[0] = 50.0
        model.symbol.weight[:, 0] = 0.0
        model.symbol.weight[END, 0] = -2.0
    return model


def cached(model: GPT, batch: int) -> int:
    prompts = [[5] * PROMPT] * batch
    started = perf_counter_ns()
    found = complete(model, prompts, LENGTH, generator=torch.Generator().manual_seed(0))
    elapsed = perf_counter_ns() - started
    assert int(found.lengths.min()) == LENGTH
    return elapsed


def uncached(model: GPT, batch: int) -> int:
    prompts = torch.full((batch, PROMPT), 5)
    started = perf_counter_ns()
    model.continue_text(prompts, LENGTH, generator=torch.Generator().manual_seed(0))
    return perf_counter_ns() - started


def measure(model: GPT, batch: int, rounds: int) -> tuple[list[Timing], Timing]:
    """Return the timings of both copies with a cache, and that of the loop without."""
    samples: list[list[int]] = [[], [], []]
    for _ in range(rounds):
        for sample, run in zip(samples, (cached, uncached, cached), strict=True):
            sample.append(run(model, batch))
    timings = [Timing(min(sample), sorted(sample)[len(sample) // 2]) for sample in samples]
    return [timings[0], timings[2]], timings[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds: does it run?")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    environment = describe_environment({"hookloop": "hookloop", "torch": "torch"})
    print_environment(environment)
    targets: list[Target] = []
    rows: dict[str, dict[str, float]] = {}
    print(f"\n{'model':10}{'rows':>6}{'with cache':>16}{'without':>14}{'ratio':>8}{'noise floor':>14}")
    with undisturbed(), torch.no_grad():
        for name, size in SIZES.items():
            model = make_model(*size)
            for batch in BATCHES:
                measure(model, batch, 1)
                copies, plain = measure(model, batch, 3 if arguments.quick else 15)
                ours, noise = middle(copies), noise_floor(copies)
                ratio = plain.per(ours)
                speed = batch * LENGTH / ours.ns_median * 1e9
                print(
                    f"{name:10}{batch:6}{speed:12.0f} /s{batch * LENGTH / plain.ns_median * 1e9:11.0f} /s"
                    f"{ratio.by_median:8.1f}{noise.by_median:14.1%}"
                )
                rows[f"{name}/{batch}"] = {"ratio": ratio.by_median, "noise": noise.by_median, "symbols_per_s": speed}
                promise = f"{name}, {batch} rows: times faster than without"
                targets.append(Target(promise, ratio, Ratio(LIMIT, LIMIT), is_upper_limit=False))
    print_targets(targets)
    if arguments.json is not None:
        report = {"environment": environment, "rows": rows, "targets": [target.as_row() for target in targets]}
        write_json(arguments.json, report)


if __name__ == "__main__":
    main()
