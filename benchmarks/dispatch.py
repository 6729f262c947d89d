"""Compare what firing one event costs in hookloop and in the hook systems people use today.

Run ``python benchmarks/dispatch.py [--quick] [--json FILE]`` with hookloop importable. Peers that are not
installed are reported as such; the full set is ``pip install torch lightning transformers accelerate
pytorch-ignite stable-baselines3 pluggy``.

What a figure contains. Each contender repeats its call expression in a ``for`` loop; the empty loop is timed
as well and taken off every figure but its own. What stays is the whole expression as a training loop would
write it: the attribute look-ups, the call, the dispatch, the hooks' empty bodies. A bare call is
``hook.on_step_end(ctx)`` with an empty body; ten bare calls are ten such expressions on ten hooks, one after
the other in one function. No figure contains a wrapping lambda. hookloop runs as it does by default, every
hook guarded and timed; no peer here times its hooks by default.

Entry points, each the line the framework's own loop runs unless it says otherwise:

- Lightning: ``call._call_callback_hooks(trainer, "on_train_batch_end", ...)``; no public way to fire an event
  exists. The Trainer has no logger, progress bar, model summary or checkpointing, and the no-op profiler.
- transformers: ``CallbackHandler.on_step_end``, without the ``DefaultFlowCallback`` that Trainer adds, so the
  figure is a lower bound.
- Ignite: ``Engine.fire_event``, the public way. Its own loop calls ``Engine._fire_event``, which skips a
  check of the event's name and is a second row; our target is measured against that cheaper one.
- Stable-Baselines3: ``CallbackList.on_step`` on a PPO model, without the ``update_locals`` that precedes it,
  so the figure is a lower bound.
- pluggy: ``plugins.hook.on_step_end(ctx=...)``.

"Scheduled, none due" is what their users write: ``batch_idx % n`` in Lightning, ``state.global_step % n`` in
transformers, ``Events.ITERATION_COMPLETED(every=n)`` in Ignite, ``EveryNTimesteps`` in Stable-Baselines3, a
modulo in pluggy. Clocks stand still while the event is timed. Before that, a second copy of each contender is
checked to call exactly the hooks it should, and to call all scheduled ones once their clock says so.

The bare call and our dispatcher with one scheduled hook are timed as four equal copies each. Their rows are
the median of the copies, and the spread between the copies is the noise floor; what is compared with our
dispatcher has to hold within the spread of our dispatcher. A target is met only if it is met by minimum and by
median.

The end-to-end row contains one Python call around the step and the increment of the clock, which the plain
step does not have, and fires the event once per step, not in a tight loop: expect more than the table says.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import random
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

from _frameworks import (
    FRAMEWORKS,
    IGNITE_LOOP,
    OURS,
    SCHEDULE_INTERVAL,
    Dispatcher,
    Framework,
    Load,
    StepEndHook,
    load_hookloop,
)
from _measure import (
    Contender,
    Ratio,
    Spin,
    Target,
    Timing,
    describe_environment,
    is_importable,
    middle,
    noise_floor,
    print_environment,
    print_targets,
    time_interleaved,
    time_steps,
    undisturbed,
    write_json,
)

BASELINE, AGAIN = "baseline", "copies of the same (A/A), for the noise floor"
EMPTY_LOOP, BARE_CALL, TEN_BARE_CALLS = "empty loop", "one bare call", "ten bare calls"
COPIES = range(1, 5)
Timings = dict[tuple[str, str], Timing]


LOADS = (
    Load("no subscriber", "active", 0),
    Load("1 active", "active", 1),
    Load("10 active", "active", 10),
    Load("10 on another event", "other", 10),
    Load("1 scheduled, none due", "scheduled", 1),
    Load("10 scheduled, none due", "scheduled", 10),
    Load("100 scheduled, none due", "scheduled", 100),
    Load("1,000 scheduled, none due", "scheduled", 1_000),
)
NO_SUBSCRIBER, TEN_ACTIVE, ONE_SCHEDULED_LOAD = LOADS[0].label, LOADS[2].label, LOADS[4]
ONE_SCHEDULED, TEN_SCHEDULED, THOUSAND_SCHEDULED = LOADS[4].label, LOADS[5].label, LOADS[7].label
COPIED = ((BARE_CALL, BASELINE), (OURS, ONE_SCHEDULED))


def main(arguments: Sequence[str] | None = None) -> None:
    """Check equivalence, time everything, print the tables and the targets, write the JSON report."""
    parser = argparse.ArgumentParser(description="Cost of firing one event, in hookloop and in its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer windows: under a minute, noisier figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as well")
    options = parser.parse_args(arguments)
    environment = describe_environment({"torch": "torch"} | {peer.package: peer.module for peer in FRAMEWORKS})
    print_environment(environment)

    digests = check_equivalence()
    contenders = [*baselines(), *(made for framework in FRAMEWORKS for made in contenders_of(framework))]
    with undisturbed():
        timings = net_timings(contenders, seconds=25 if options.quick else 200)
        end_to_end = time_end_to_end(rounds=60 if options.quick else 400)
    noises = {name: noise_floor(copies) for name, _ in COPIED if (copies := copies_of(name, timings))}
    targets = list_targets(timings, noises)
    print_rows(timings, noises)
    print_end_to_end(end_to_end)
    print_targets(targets)
    if options.json:
        rows = [row_of(name, load, timings) for name, load in all_rows()]
        report = {
            "environment": environment,
            "equivalence": digests,
            "noise_floor": {name: asdict(noise) for name, noise in noises.items()},
            "rows": rows,
        }
        report |= {"end_to_end": end_to_end, "targets": [target.as_row() for target in targets]}
        write_json(options.json, report)


def baselines() -> list[Contender]:
    """Build the empty loop, the bare call with its copies, and ten bare calls in a row."""

    def empty(calls: int) -> None:
        for _ in range(calls):
            pass

    def bare() -> Spin:
        hook, ctx = StepEndHook(), object()

        def spin(calls: int) -> None:
            for _ in range(calls):
                hook.on_step_end(ctx)

        return spin

    def ten(calls: int) -> None:
        ctx = object()
        a, b, c, d, e, f, g, h, i, j = [StepEndHook() for _ in range(10)]
        for _ in range(calls):
            a.on_step_end(ctx)
            b.on_step_end(ctx)
            c.on_step_end(ctx)
            d.on_step_end(ctx)
            e.on_step_end(ctx)
            f.on_step_end(ctx)
            g.on_step_end(ctx)
            h.on_step_end(ctx)
            i.on_step_end(ctx)
            j.on_step_end(ctx)

    copies = [Contender(*copy_key(BARE_CALL, copy), bare()) for copy in COPIES]
    return [Contender(EMPTY_LOOP, BASELINE, empty), Contender(TEN_BARE_CALLS, BASELINE, ten), *copies]


def copy_key(name: str, copy: int) -> tuple[str, str]:
    """Return the name and load under which a copy of a contender is timed."""
    return f"{name} #{copy}", AGAIN


def contenders_of(framework: Framework) -> list[Contender]:
    """Build a framework under every load, and our copies for the noise floor."""
    if not framework.is_installed:
        return []

    def make(name: str, label: str, load: Load) -> Contender:
        dispatcher = framework.build(load)
        dispatcher.set_clock(1)
        return Contender(name, label, dispatcher.spin)

    for load in LOADS:
        verify(framework, load)
    if framework.name != OURS:
        return [make(framework.name, load.label, load) for load in LOADS]
    copies = [make(*copy_key(OURS, copy), ONE_SCHEDULED_LOAD) for copy in COPIES]
    return copies + [make(OURS, load.label, load) for load in LOADS if load is not ONE_SCHEDULED_LOAD]


def verify(framework: Framework, load: Load) -> None:
    """Refuse to time a dispatcher that does not call exactly the hooks it should."""
    dispatcher = framework.build(load)
    expected = {1: load.hooks if load.kind == "active" else 0}
    if load.kind == "scheduled":
        expected[SCHEDULE_INTERVAL] = load.hooks
    for clock, hooks in expected.items():
        dispatcher.set_clock(clock)
        counted = count_calls(dispatcher)
        if counted != hooks:
            raise RuntimeError(
                f"{framework.name} with {load.label} called {counted} hooks at step {clock}, "
                f"expected {hooks}: this version needs a different benchmark."
            )


def count_calls(dispatcher: Dispatcher) -> int:
    """Fire the event once and count how often a hook's body runs, without touching the hooks."""
    counted = 0

    def on_call(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        counted += event == "call" and frame.f_code is dispatcher.body

    sys.setprofile(on_call)
    try:
        dispatcher.spin(1)
    finally:
        sys.setprofile(None)
    return counted


def net_timings(contenders: Sequence[Contender], *, seconds: float) -> Timings:
    """Time the contenders, take the empty loop off each, and reduce copies to the row they stand for."""
    gross = time_interleaved(contenders, seconds=seconds)
    loop = gross[[contender.name for contender in contenders].index(EMPTY_LOOP)]
    timings = {
        (contender.name, contender.load): timing if timing is loop else timing.minus(loop)
        for contender, timing in zip(contenders, gross, strict=True)
    }
    for name, load in COPIED:
        if copies := copies_of(name, timings):
            timings[name, load] = middle(copies)
    return timings


def copies_of(name: str, timings: Timings) -> list[Timing]:
    """Return the timings of all copies of one contender; none if it is not installed."""
    return [timings[key] for copy in COPIES if (key := copy_key(name, copy)) in timings]


def list_targets(timings: Timings, noises: dict[str, Ratio]) -> list[Target]:
    """Compare our figures with what we promise."""

    def ratio(top: tuple[str, str], bottom: tuple[str, str]) -> Ratio | None:
        return timings[top].per(timings[bottom]) if top in timings and bottom in timings else None

    bare, ten_bare = (BARE_CALL, BASELINE), (TEN_BARE_CALLS, BASELINE)
    noise = noises.get(OURS, noises[BARE_CALL])
    no_slower = Ratio(1 + noise.by_min, 1 + noise.by_median)
    return [
        Target("no subscriber, in bare calls", ratio((OURS, NO_SUBSCRIBER), bare), Ratio(3, 3)),
        Target("1,000 scheduled none due, in bare calls", ratio((OURS, THOUSAND_SCHEDULED), bare), Ratio(4, 4)),
        Target(
            "1,000 scheduled none due against 1 (limit: noise)",
            ratio((OURS, THOUSAND_SCHEDULED), (OURS, ONE_SCHEDULED)),
            no_slower,
        ),
        Target("10 active, against ten bare calls", ratio((OURS, TEN_ACTIVE), ten_bare), Ratio(6, 6)),
        *(
            Target(
                f"{peer.partition(' ')[0]} over hookloop, 10 scheduled none due",
                ratio((peer, TEN_SCHEDULED), (OURS, TEN_SCHEDULED)),
                Ratio(10, 10),
                is_upper_limit=False,
            )
            for peer in ("lightning", "transformers", IGNITE_LOOP)
        ),
    ]


def check_equivalence() -> dict[str, str] | None:
    """Train a toy without a dispatcher, with 0 hooks and with 1,000 idle ones: same bits, or stop."""
    if not FRAMEWORKS[0].is_installed:
        print("equivalence: hookloop is not installed")
        return None
    idle = Load("idle", "scheduled", 1_000)
    fires = {
        "plain loop": lambda: None,
        "0 hooks": fire_hookloop(LOADS[0]),
        "1,000 idle hooks": fire_hookloop(idle),
    }
    digests = {name: train_floats(fire) for name, fire in fires.items()}
    if len(set(digests.values())) != 1:
        raise RuntimeError(f"Hooks changed the training they watch: {digests}.")
    print(f"equivalence: {', '.join(digests)} end in the same bits ({digests['plain loop'][:16]})")
    return digests


def fire_hookloop(load: Load) -> Callable[[], None]:
    """Return a function that counts one step on our clock and fires our event."""
    hooks, ctx = load_hookloop(load)

    def fire() -> None:
        ctx.state.clocks.env_steps += 1
        hooks.emit.step_end(ctx)

    return fire


def train_floats(fire: Callable[[], None], *, updates: int = 2_000) -> str:
    """Fit a list of floats by noisy gradient steps; return a digest of weights and generators."""
    # The module's generator takes part: a private one could not show that a hook drew from the shared one.
    random.seed(1)
    generator = random.Random(2)
    weights = [generator.gauss(0.0, 1.0) for _ in range(16)]
    for _ in range(updates):
        inputs = [generator.uniform(-1.0, 1.0) for _ in weights]
        error = sum(w * x for w, x in zip(weights, inputs, strict=True)) - sum(inputs) + 0.1 * random.random()
        weights = [w - 0.05 * error * x for w, x in zip(weights, inputs, strict=True)]
        fire()
    generators = repr((generator.getstate(), random.getstate())).encode()
    return hashlib.sha256(struct.pack(f"<{len(weights)}d", *weights) + generators).hexdigest()


def time_end_to_end(*, rounds: int) -> dict[str, float | bool] | None:
    """Time a very small optimiser step: plain, plain again, and followed by our event with 20 idle hooks."""
    if not is_importable("torch") or not FRAMEWORKS[0].is_installed:
        return None
    import torch

    torch.set_num_threads(1)
    # All three share one layer: where its tensors happen to lie in memory costs more than our event does.
    step, _ = torch_step()
    idle = Load("idle", "scheduled", 20)
    hooks, ctx = load_hookloop(idle)

    def step_and_fire() -> None:
        step()
        ctx.state.clocks.env_steps += 1
        hooks.emit.step_end(ctx)

    samples = time_steps([step, step_and_fire, step], rounds=rounds)
    # The 10th percentile, not the minimum: a step is long, and rarely undisturbed from end to end.
    plain, ours, again = (sorted(sample)[len(sample) // 10] / 1_000 for sample in samples)
    return {
        "plain_us": plain,
        "plain_again_us": again,
        "with_20_idle_hooks_us": ours,
        "extra_us": ours - (plain + again) / 2,
        "noise_us": abs(plain - again),
        "has_same_weights": torch.equal(train_layer(lambda: None), train_layer(fire_hookloop(idle))),
    }


def torch_step() -> tuple[Callable[[], None], Any]:
    """Return one batch-1 SGD step on a linear layer, and the layer's weights."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = itertools.cycle([(torch.randn(1, 8), torch.randn(1, 1)) for _ in range(64)])

    def step() -> None:
        inputs, wanted = next(batches)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()

    return step, model.weight


def train_layer(fire: Callable[[], None], *, updates: int = 1_000) -> Any:
    """Return the weights of a layer trained from a fixed seed, with ``fire`` called after each step."""
    step, weights = torch_step()
    for _ in range(updates):
        step()
        fire()
    return weights


def all_rows() -> list[tuple[str, str]]:
    """Return every row of the table, installed or not, grouped by load."""
    return [
        *((name, BASELINE) for name in (EMPTY_LOOP, BARE_CALL, TEN_BARE_CALLS)),
        *((framework.name, load.label) for load in LOADS for framework in FRAMEWORKS),
        *(copy_key(name, copy) for name, _ in COPIED for copy in COPIES),
    ]


def row_of(name: str, load: str, timings: Timings) -> dict[str, Any]:
    """Return one row of the report; the figures are ``None`` for what is not installed."""
    timing = timings.get((name, load))
    figures = asdict(timing) if timing else {"ns_min": None, "ns_median": None}
    bare_calls = asdict(timing.per(timings[BARE_CALL, BASELINE])) if timing else None
    return {"name": name, "load": load, **figures, "bare_calls": bare_calls}


def print_rows(timings: Timings, noises: dict[str, Ratio]) -> None:
    """Print one block per load."""
    print(f"\n{'ns per event':40}{'min':>12}{'median':>12}{'bare calls':>12}")
    for load, rows in itertools.groupby(all_rows(), key=lambda row: row[1]):
        print(load)
        for name, _ in rows:
            row = row_of(name, load, timings)
            figures = f"{'not installed':>24}"
            if row["bare_calls"]:
                figures = f"{row['ns_min']:12,.1f}{row['ns_median']:12,.1f}{row['bare_calls']['by_min']:12,.1f}"
            print(f"  {name:38}{figures}")
    for name, noise in noises.items():
        print(f"noise floor, {name}: {noise.by_min:.1%} of minima, {noise.by_median:.1%} of medians")


def print_end_to_end(figures: dict[str, float | bool] | None) -> None:
    """Print what 20 idle hooks add to a whole optimiser step."""
    if figures is None:
        print("\nend to end: skipped, it needs torch and hookloop")
        return
    print(
        "\nend to end, linear layer, batch 1, SGD, 10th percentile of a step: "
        f"plain {figures['plain_us']:.2f} us, with 20 idle hooks {figures['with_20_idle_hooks_us']:.2f} us, "
        f"extra {figures['extra_us']:+.2f} us ({figures['extra_us'] / figures['plain_us']:+.2%}), "
        f"A/A noise {figures['noise_us']:.2f} us, same weights: {figures['has_same_weights']}"
    )


if __name__ == "__main__":
    main()
