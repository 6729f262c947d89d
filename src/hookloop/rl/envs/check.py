"""Try environments out before training in them, and say in sentences what is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hookloop.core.plain import require_plain
from hookloop.errors import HookStateError
from hookloop.rl.envs.base import Envs
from hookloop.rl.envs.errors import EnvMismatchError
from hookloop.rl.envs.random_actions import random_actions
from hookloop.rl.specs import Array


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (``error``), or that one should know (``warning``), as a sentence."""

    kind: Literal["error", "warning"]
    message: str

    def __str__(self) -> str:
        return self.message


def check_envs(envs: Envs, *, steps: int = 500, seed: int = 0) -> list[Problem]:
    """Act at random and return what is wrong; an empty list for environments that keep every promise.

    Args:
        envs: The environments; they are reset, and left in some state.
        steps: How many steps to take in each of them, three times over.
        seed: Of the environments and of the actions.
    """
    try:
        first = _run(envs, steps=steps, seed=seed)
        problems = list(_episodes(envs, steps))
        chance = list(_determinism(first, _run(envs, steps=steps, seed=seed)))
        # What differs from run to run would differ after a load as well, and not because of it.
        return problems + (chance or list(_saving(envs, steps=steps, seed=seed)))
    except EnvMismatchError as error:
        return [Problem("error", str(error))]


def steps_per_second(envs: Envs, *, seconds: float = 0.5, seed: int = 0) -> float:
    """Measure how many environment steps (fillers not counted) random actions make in a second."""
    envs.reset(seed)
    generator = np.random.default_rng(seed)
    ready = [random_actions(envs.action, envs.num_envs, generator) for _ in range(64)]
    num_steps, vector_steps = 0, 0
    begin = now = time.perf_counter()
    while now - begin < seconds:
        has_masks = envs.action_masks is not None
        envs.step(_draw(envs, generator) if has_masks else ready[vector_steps % len(ready)])
        num_steps += int(np.count_nonzero(envs.valid)) if envs.has_fillers else envs.num_envs
        vector_steps += 1
        now = time.perf_counter()
    return num_steps / (now - begin)


def _run(envs: Envs, *, steps: int, seed: int) -> list[dict[str, bytes]]:
    """Reset and act at random; return what each step gave."""
    envs.reset(seed)
    generator = np.random.default_rng(seed)
    trace = [_results(envs)]
    envs.check_next_steps(steps)
    for _ in range(steps):
        envs.step(_draw(envs, generator))
        trace.append(_results(envs))
    return trace


def _draw(envs: Envs, generator: np.random.Generator) -> Array:
    return random_actions(envs.action, envs.num_envs, generator, envs.action_masks)


def _results(envs: Envs) -> dict[str, bytes]:
    fields = dict(_observations(envs))
    fields |= {"rewards": envs.rewards, "terminated": envs.terminated, "truncated": envs.truncated}
    if envs.action_masks is not None:
        fields["action_masks"] = envs.action_masks
    return {name: array.tobytes() for name, array in fields.items()}


def _observations(envs: Envs) -> Iterator[tuple[str, Array]]:
    if isinstance(envs.obs, dict):
        for key, array in envs.obs.items():
            yield f"obs[{key!r}]", array
    else:
        yield "obs", envs.obs


def _episodes(envs: Envs, steps: int) -> Iterator[Problem]:
    if envs.num_double_ends:
        yield Problem(
            "warning",
            f"Both terminated and truncated were set on one step, {envs.num_double_ends} times; such an end counts as "
            "terminated. Set truncated only where the episode could have gone on.",
        )
    if int(envs.episode_lengths.min()) >= steps:
        yield Problem(
            "warning",
            f"No episode ended in {steps} steps of random actions, so nothing will be known of returns for long. "
            "Limit the episodes with max_episode_steps, or try more steps.",
        )


def _determinism(first: list[dict[str, bytes]], second: list[dict[str, bytes]]) -> Iterator[Problem]:
    difference = _first_difference(first, second)
    if difference is not None:
        index, field = difference
        when = "after the reset" if index == 0 else f"on step {index}"
        yield Problem(
            "error",
            f"The same seed and the same actions gave other {field} {when}, so no run can be repeated. Draw all "
            "randomness from self.np_random, which reset(seed) seeds, and keep no state from one episode to the next.",
        )


def _saving(envs: Envs, *, steps: int, seed: int) -> Iterator[Problem]:
    _run(envs, steps=max(steps // 2, 1), seed=seed)
    state = envs.state_dict()
    try:
        require_plain(state, "the saved state")
    except HookStateError as error:
        yield Problem("error", f"The environments save something that no file can hold: {error}")
        return
    if envs.inexact_because:
        yield Problem(
            "warning",
            f"A resume cannot go on in the middle of an episode but begins new ones, because {envs.inexact_because}.",
        )
        return
    straight = _go_on(envs, steps=steps - steps // 2, seed=seed)
    envs.load_state_dict(state)
    difference = _first_difference(straight, _go_on(envs, steps=steps - steps // 2, seed=seed))
    if difference is not None:
        index, field = difference
        yield Problem(
            "error",
            f"After a save and a load, {field} differed on step {index + 1} from what came without them: something "
            "changes that is kept outside of the environment's attributes. Give it get_state() and set_state().",
        )


def _go_on(envs: Envs, *, steps: int, seed: int) -> list[dict[str, bytes]]:
    generator = np.random.default_rng(seed + 1)
    trace: list[dict[str, bytes]] = []
    for _ in range(steps):
        envs.step(_draw(envs, generator))
        trace.append(_results(envs))
    return trace


def _first_difference(first: list[dict[str, bytes]], second: list[dict[str, bytes]]) -> tuple[int, str] | None:
    for index, (one, other) in enumerate(zip(first, second, strict=True)):
        for field in one:
            if one[field] != other[field]:
                return index, field
    return None
