"""``hookloop sample``: let a model of text go on with one."""

from __future__ import annotations

import sys
from pathlib import Path

from hookloop.cli.sample_sequences import answer_prompts
from hookloop.cli.trained_model import find_trained, load_trained
from hookloop.errors import ConfigError

BEGINNING = "\n"
"""What an empty text is continued from: every module of the training text begins after one."""


def sample(
    run: str,
    prompt: str = "",
    *,
    length: int = 500,
    temperature: float = 0.8,
    top_k: int | None = None,
    seed: int = 0,
    checkpoint: str = "latest",
    runs_dir: Path = Path("runs"),
) -> int:
    """Continue a text with the model of a run, symbol by symbol.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        prompt: The text to continue; it is written first. A run on lessons makes up one of each if there is none.
        length: How many symbols to add.
        temperature: Below 1 likely symbols are drawn more often; at 0 always the likeliest.
        top_k: Draw from so many of the likeliest symbols alone; from all by default.
        seed: What the draws follow from.
        checkpoint: Which weights: latest, best, final, a step, an epoch such as epoch5, a path or a URI.
        runs_dir: The folder of all runs.
    """
    _require(length, temperature, top_k)
    folder = find_trained(runs_dir, run, "sample")
    if folder.read_config().workload == "sequences":
        return answer_prompts(folder, prompt, length, temperature, top_k, seed=seed, checkpoint=checkpoint)
    import torch  # here and not above: a wrong argument should not cost the import

    from hookloop.supervised.datasets.charlm import decode, encode, strange_symbols

    strange = strange_symbols(prompt)
    if strange:
        raise ConfigError(
            f"The model knows tab, line feed and what ASCII prints, and not {', '.join(map(repr, strange[:5]))}; "
            "write the prompt without."
        )
    model = load_trained(folder, checkpoint).model
    draws = model.continuation(
        encode(prompt or BEGINNING)[None],
        length,
        generator=torch.Generator().manual_seed(seed),
        temperature=temperature,
        top_k=top_k,
    )
    sys.stdout.write(prompt)
    for drawn in draws:
        sys.stdout.write(decode(drawn[0]))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0


def _require(length: int, temperature: float, top_k: int | None) -> None:
    if length < 1:
        raise ConfigError(f"--length must be at least 1 symbol, got {length}.")
    if not 0 <= temperature < float("inf"):
        raise ConfigError(f"--temperature must be 0 or more, got {temperature}.")
    if top_k is not None and top_k < 1:
        raise ConfigError(f"--top-k must be at least 1 symbol, got {top_k}.")
