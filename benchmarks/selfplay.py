"""Measure self-play of shogi: what games, masks and buffer add to the network, and what batching them is worth.

Run ``python benchmarks/selfplay.py [--quick] [--rounds N] [--json FILE]`` with hookloop importable and the extra
``games`` installed; ``--strength connect4`` (or ``tictactoe``, ``shogi``) trains that recipe over seeds and shows how
strong it becomes, instead.

256 games, a residual network of 3 blocks of 32 channels that sees the board from the side of who moves, with a
convolutional head over 13,689 actions; one thread. All contenders but one use the same network. It stays as it is in
the beginning, so games are those of chance, and under way.

- network alone: the forward on the positions that hookloop has met in its turn, step by step, in inference mode: all
  logits and values, and nothing else. It takes a second turn in each round, which is the noise floor.
- network, board as it lies: the same of a network that sees all positions from the side of the first seat.
- hookloop: the collector of a trainer fills its experience. Observations, masks, the draw, log-probabilities, values,
  seats, rewards and ends are kept; hooks and learning are not part of it.
- plain loop: a loop over the games that asks the library for ``observation_tensor()`` and ``legal_actions_mask()``,
  stacks them for one forward, then draws and applies a move in each; it keeps the same of each move, in a list.
- plain loop, masks by hand: the same, with the mask made of ``legal_actions()``.

They take turns in one process; a turn is some steps of all games. Figures are CPU time, since of a shared machine wall
time tells more about the neighbours; it stands beside. "By min" compares the fastest turns, "by median" is the median
over rounds of the ratio within a round. A target is met only if it is met by both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from _measure import (
    Ratio,
    Target,
    describe_environment,
    print_environment,
    print_targets,
    undisturbed,
    write_json,
)
from _selfplay_plain import PlainLoop
from _selfplay_strength import RECIPES, print_strength

from hookloop.rl.config import TrainerConfig
from hookloop.selfplay import GameConfig, NetworkConfig, SelfPlayConfig, build_policy, build_trainer

GAMES, STEPS = 256, 4
OPENING_TURNS = 6
NETWORK, AGAIN, OURS = "network alone", "network alone, again", "hookloop"
AS_IT_LIES = "network, board as it lies"
PLAIN, BY_HAND = "plain loop", "plain loop, masks by hand"
PACKAGES = {"hookloop": "hookloop", "torch": "torch", "numpy": "numpy", "open_spiel": "pyspiel"}
Turn = Callable[[], None]
Spent = dict[str, list[tuple[float, float]]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Race, print the table and the targets, write the JSON report; or show the strength of a recipe."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer turns: half a minute, noisier figures")
    parser.add_argument("--rounds", type=int, default=None, metavar="N", help="turns of each contender")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as well")
    parser.add_argument("--strength", choices=RECIPES, help="train this recipe and play matches, instead")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="for --strength")
    parser.add_argument("--steps", type=int, help="moves of training for --strength, in place of the recipe's")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if options.strength:
        print_strength(options.strength, options.seeds, options.steps)
        return
    environment = describe_environment(PACKAGES)
    print_environment(environment)
    with undisturbed():
        spent = race(contenders(), options.rounds or (5 if options.quick else 40))
    print_speeds(spent)
    targets = targets_of(spent)
    print_targets(targets)
    if options.json:
        seconds = {name: [{"cpu": cpu, "wall": wall} for cpu, wall in turns] for name, turns in spent.items()}
        rows = [target.as_row() for target in targets]
        write_json(options.json, {"environment": environment, "seconds": seconds, "targets": rows})


def contenders() -> dict[str, Turn]:
    """Return what takes turns, with games that are under way."""
    config = SelfPlayConfig(
        game=GameConfig(name="shogi", num_envs=GAMES),
        network=NetworkConfig(blocks=3, channels=32, from_mover=True),
        trainer=TrainerConfig(horizon=STEPS, gamma=1.0),
    )
    trainer = build_trainer(config, seed=0)
    network, collector, loop = trainer.policy.network, trainer.workload.collector, trainer.loop
    plain = build_policy(NetworkConfig(blocks=3, channels=32), trainer.games).network
    by_asking = PlainLoop("shogi", GAMES, network, asks_for_masks=True)
    by_hand = PlainLoop("shogi", GAMES, network, asks_for_masks=False)

    def forward(one: torch.nn.Module) -> None:
        with torch.inference_mode():
            for obs in trainer.experience.rows["obs"]:
                one(obs)

    turns: dict[str, Turn] = {
        NETWORK: lambda: forward(network),
        AS_IT_LIES: lambda: forward(plain),
        OURS: lambda: collector.collect(loop),
        PLAIN: lambda: by_asking.play(STEPS),
        BY_HAND: lambda: by_hand.play(STEPS),
        AGAIN: lambda: forward(network),
    }
    for _ in range(OPENING_TURNS):
        collector.collect(loop)
    by_asking.states = [state.clone() for state in trainer.games.states]
    by_hand.states = [state.clone() for state in trainer.games.states]
    for turn in turns.values():
        turn()
    return turns


def race(turns: dict[str, Turn], rounds: int) -> Spent:
    """Return CPU and wall seconds of every turn."""
    spent: Spent = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            cpu, wall = time.process_time(), time.perf_counter()
            turn()
            spent[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return spent


def ratio(spent: Spent, name: str, other: str) -> Ratio:
    """Return how many times as long one contender takes as another, by fastest turn and by median of rounds."""
    ones, others = ([cpu for cpu, _wall in spent[each]] for each in (name, other))
    pairs = zip(ones, others, strict=True)
    return Ratio(min(ones) / min(others), statistics.median(one / other for one, other in pairs))


def print_speeds(spent: Spent) -> None:
    positions = GAMES * STEPS
    print(
        f"\n{'positions per second':28}{'CPU, best':>11}{'CPU, median':>13}{'wall, median':>14}{'of the network':>16}"
    )
    for name, turns in spent.items():
        cpu, wall = zip(*turns, strict=True)
        share = ratio(spent, NETWORK, name).by_median
        print(
            f"{name:28}{positions / min(cpu):11.0f}{positions / statistics.median(cpu):13.0f}"
            f"{positions / statistics.median(wall):14.0f}{share:16.3f}"
        )
    floor = ratio(spent, NETWORK, AGAIN)
    print(f"noise floor: {abs(floor.by_min - 1):.1%} by min, {abs(floor.by_median - 1):.1%} by median")


def targets_of(spent: Spent) -> list[Target]:
    return [
        Target("speed with games / network alone", ratio(spent, NETWORK, OURS), Ratio(0.80, 0.80), False),
        Target("speed / plain loop", ratio(spent, PLAIN, OURS), Ratio(1.5, 1.5), False),
        Target("speed / plain loop, masks by hand", ratio(spent, BY_HAND, OURS), Ratio(1.5, 1.5), False),
    ]


if __name__ == "__main__":
    main()
