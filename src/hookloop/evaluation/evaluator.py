"""Carries an evaluation out: every simulation of a task, played, scored and joined into one result."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from hookloop.core import derive_seed
from hookloop.core.global_random import load_global_random, save_global_random, seed_global_random
from hookloop.errors import NoEpisodesError
from hookloop.evaluation.results import EvaluationResult, Key, PlayedEpisode, Score
from hookloop.evaluation.tasks import EvaluationTask, Player


def evaluate(
    task: EvaluationTask,
    player: Player,
    simulations: Mapping[Key, Any],
    *,
    run_seed: int,
    clocks: Mapping[str, float],
    checkpoint: str | None = None,
    time_s: Callable[[], float] = time.perf_counter,
) -> EvaluationResult:
    """Play every simulation and score it; those without an episode are failures, and an error if there are no others.

    Args:
        task: How to play.
        player: The policy.
        simulations: What to play, as ``task.simulations`` says.
        run_seed: The seed of the run; episodes and intervals follow from it.
        clocks: The moment of training the policy is from.
        checkpoint: Which checkpoint the policy is from, if it is from one.
        time_s: The stopwatch.
    """
    seed = task.first_seed(run_seed)
    begun = time_s()
    scores: dict[Key, Score] = {}
    records: list[tuple[Key, PlayedEpisode]] = []
    failures: dict[Key, NoEpisodesError] = {}
    for key, env in simulations.items():
        played = player.play(env, task.wanted(seed))
        what = f"{task.name!r}" if len(simulations) == 1 else f"{task.name!r} in {key[1]!r}"
        try:
            scores[key] = Score.of(played, what=what, seed=derive_seed(run_seed, "intervals", task.name, key[1]))
        except NoEpisodesError as error:
            failures[key] = error
        records += [(key, episode) for episode in played.episodes if episode.record is not None]
    if failures and not scores:
        raise next(iter(failures.values()))
    told = {key: str(error) for key, error in failures.items()}
    return EvaluationResult(
        task.name, scores, dict(clocks), seed, task.greedy, time_s() - begun, checkpoint, tuple(records), failures=told
    )


@contextmanager
def kept_global_random(seed: int) -> Generator[None]:
    """Let what is done within draw from global random streams, as a few environments do, and put them back after."""
    saved = save_global_random()
    seed_global_random(seed)
    try:
        yield
    finally:
        load_global_random(saved)
