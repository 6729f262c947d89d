"""Measure what a curriculum is worth: adaptive against uniform choice of lessons, at equal steps, over seeds.

Run ``python benchmarks/curriculum.py [--quick] [--seeds N] [--workers N] [--json FILE]`` with hookloop importable and
the extra ``envpool`` installed.

Both train the recipe ``minigrid``: the same network, rates, seeds, number of environment steps and of updates. They
differ in one setting, ``curriculum.strategy``. Afterwards each lesson is played in new environments, with actions drawn
from the policy as in training, until every environment has ended one episode: those first episodes count, so short ones
are not counted more often than long ones.

What counts is the success in the hardest lessons, the last two. Intervals are of the mean over seeds, by bootstrap
(10,000 resamples, 95 %); the difference is taken seed by seed. With few seeds they are rough.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from _measure import describe_environment, print_environment, write_json

from hookloop.config.overrides import apply_overrides
from hookloop.recipes import find_recipe
from hookloop.rl.build import build_envs, build_trainer, lesson_env
from hookloop.rl.config import RLConfig
from hookloop.rl.policies import Policy

STRATEGIES = ("adaptive", "uniform")
HARDEST = 2
EPISODES = 128
EVALUATION_SEED = 10_000


def trained(job: tuple[str, int, int]) -> dict[str, Any]:
    strategy, seed, steps = job
    torch.set_num_threads(1)
    changes = (f"curriculum.strategy={strategy}", f"total_env_steps={steps}")
    config = apply_overrides(find_recipe("minigrid"), changes, what="the recipe 'minigrid'")
    assert isinstance(config, RLConfig)
    trainer = build_trainer(config, seed=seed)
    opened: dict[str, int] = {}

    def note(ctx: Any) -> None:
        change = ctx.metadata["lesson_change"]
        if change.change == "unlocked":
            opened[change.lesson] = ctx.state.clocks.env_steps

    trainer.add_hook(note, name="note", on="lesson_changed")
    began = time.perf_counter()
    result = trainer.train(steps)
    seconds = time.perf_counter() - began
    assert config.curriculum is not None
    success = {name: played(config, name, trainer.policy, seed) for name in config.curriculum.lessons}
    return {
        "strategy": strategy, "seed": seed, "env_steps": result.env_steps, "seconds": seconds,
        "steps_per_s": result.env_steps / seconds, "success": success, "opened": opened,
    }  # fmt: skip


def played(config: RLConfig, lesson: str, policy: Policy, seed: int) -> float:
    """Return the share of first episodes that succeed."""
    assert config.curriculum is not None
    wanted = config.curriculum.lessons[lesson]
    settings = lesson_env(config.env, wanted.env).model_copy(update={"num_envs": EPISODES})
    envs = build_envs(settings, gamma=config.trainer.gamma)
    envs.reset(EVALUATION_SEED + seed)
    generator = torch.Generator().manual_seed(seed)
    returns: dict[int, float] = {}
    while len(returns) < EPISODES:
        obs = envs.obs
        assert not isinstance(obs, dict)
        envs.step(policy.act(torch.from_numpy(obs), generator=generator).actions.numpy())
        for episode in envs.finished:
            returns.setdefault(episode.env_index, episode.return_)
    envs.close()
    return sum(return_ > wanted.success_return for return_ in returns.values()) / EPISODES


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return the mean and the ends of its interval."""
    generator = random.Random(0)
    means = sorted(sum(generator.choices(values, k=len(values))) / len(values) for _ in range(10_000))
    return sum(values) / len(values), means[249], means[9750]


def report(found: list[dict[str, Any]]) -> dict[str, Any]:
    lessons = list(found[0]["success"])
    by = {strategy: [each for each in found if each["strategy"] == strategy] for strategy in STRATEGIES}
    rows = {
        name: {strategy: [each["success"][name] for each in by[strategy]] for strategy in STRATEGIES}
        for name in lessons
    }
    hardest = " and ".join(lessons[-HARDEST:])
    rows[hardest] = {
        strategy: [sum(each["success"][name] for name in lessons[-HARDEST:]) / HARDEST for each in by[strategy]]
        for strategy in STRATEGIES
    }
    summary: dict[str, Any] = {}
    print(f"{'success':28}{'adaptive':>22}{'uniform':>22}{'difference':>24}")
    for name, values in rows.items():
        difference = [one - other for one, other in zip(values["adaptive"], values["uniform"], strict=True)]
        summary[name] = {"adaptive": interval(values["adaptive"]), "uniform": interval(values["uniform"]),
                         "difference": interval(difference)}  # fmt: skip
        cells = [f"{mean:.2f} [{low:.2f}, {high:.2f}]" for mean, low, high in summary[name].values()]
        print(f"{name:28}{cells[0]:>22}{cells[1]:>22}{cells[2]:>24}")
    speed = sum(each["steps_per_s"] for each in found) / len(found)
    print(f"{found[0]['env_steps']} steps each, {len(by['adaptive'])} seeds, {speed:.0f} steps/s on average")
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed and a tenth of the steps: does it run?")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--workers", type=int, default=1, help="runs at a time; more than one spoils the speeds")
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    seeds, steps = (1, 50_000) if arguments.quick else (arguments.seeds, arguments.steps)
    environment = describe_environment({"envpool": "envpool", "torch": "torch"}) | {"pinned_to_one_core": False}
    print_environment(environment)
    jobs = [(strategy, seed, steps) for seed in range(seeds) for strategy in STRATEGIES]
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for each in pool.map(trained, jobs):
            success = " ".join(f"{name} {value:.2f}" for name, value in each["success"].items())
            print(f"{each['strategy']:9} seed {each['seed']}  {each['seconds']:5.0f} s  {success}", flush=True)
            found.append(each)
    summary = report(found)
    if arguments.json:
        write_json(arguments.json, {"environment": environment, "runs": found, "summary": summary})


if __name__ == "__main__":
    main()
