"""Named random streams: each is a function of the run's seed and a name, never of who drew before."""

from __future__ import annotations

import hashlib
import random


def derive_seed(seed: int, *names: object) -> int:
    """Return a 63-bit seed for the stream called ``names`` of the run seeded with ``seed``."""
    text = "\x1f".join((str(seed), *map(str, names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def rank_seed(seed: int, rank: int) -> int:
    """Return the root of one rank's own randomness; main's is the run's, as if it were alone."""
    return seed if rank == 0 else derive_seed(seed, "rank", rank)


def stream(seed: int, *names: object) -> random.Random:
    """Return a fresh generator of the stream called ``names``."""
    return random.Random(derive_seed(seed, *names))
