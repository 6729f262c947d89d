"""How often each lesson is trained: by what there is to learn in it, never less than a floor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def learning_weight(success: float, episodes: int, *, novelty_decay: float = 0.01) -> float:
    """Return 4s(1-s) * (1 + exp(-decay * n)): largest for what succeeds half the time, doubled for what is new."""
    return 4.0 * success * (1.0 - success) * (1.0 + math.exp(-novelty_decay * episodes))


def with_floor(weights: Mapping[str, float], floor: float) -> dict[str, float]:
    """Return probabilities in proportion to ``weights``, each at least ``floor``, that add up to 1.

    What the floor adds to some is taken from the others in proportion. If all weights are 0, all are alike.
    """
    if not weights:
        return {}
    free = dict(weights)
    floored: dict[str, float] = {}
    while free:
        rest = 1.0 - floor * len(floored)
        total = math.fsum(free.values())
        if total <= 0.0:
            free = {name: rest / len(free) for name in free}
            break
        scaled = {name: rest * weight / total for name, weight in free.items()}
        below = [name for name, share in scaled.items() if share < floor]
        if not below:
            free = scaled
            break
        for name in below:
            floored[name] = floor
            del free[name]
    found = {**floored, **free}
    total = math.fsum(found.values())  # 1, but for rounding
    return {name: found[name] / total for name in weights}


def allot(probabilities: Mapping[str, float], present: Sequence[str], offset: float) -> list[str]:
    """Share out places among lessons, as near to their probabilities as whole numbers are, moving as few as possible.

    A lesson gets its probability times the number of places, rounded up or down by chance: one ``offset`` in [0, 1)
    decides for all (systematic sampling), so that on average each gets exactly its share.

    Args:
        probabilities: Of each lesson; they add up to 1.
        present: What each place has now; an empty text for none.
        offset: A random number in [0, 1).
    """
    wanted = _counts(probabilities, len(present), offset)
    allotted: list[str | None] = []
    for lesson in present:
        stays = wanted.get(lesson, 0) > 0
        allotted.append(lesson if stays else None)
        if stays:
            wanted[lesson] -= 1
    missing = iter([lesson for lesson, count in wanted.items() for _ in range(count)])
    return [next(missing) if lesson is None else lesson for lesson in allotted]


def _counts(probabilities: Mapping[str, float], places: int, offset: float) -> dict[str, int]:
    """Return how many of the marks offset, offset + 1 ... fall to each lesson on a ruler of ``places``."""
    counts: dict[str, int] = {}
    reached, marks = 0.0, 0
    for lesson, probability in probabilities.items():
        reached += probability * places
        below = min(max(math.ceil(reached - offset), 0), places)
        counts[lesson] = below - marks
        marks = below
    if marks < places:  # rounding kept the ruler's end short of the last mark
        counts[[lesson for lesson, probability in probabilities.items() if probability > 0][-1]] += places - marks
    return counts
