"""``hookloop play``: play a game against the model of a run, or watch it play itself."""

from __future__ import annotations

import math
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from hookloop.boards import seat_names
from hookloop.cli.boards import painted
from hookloop.cli.exit_codes import EXIT_DONE
from hookloop.cli.workloads import read_settings
from hookloop.errors import ConfigError
from hookloop.runs.folder import RunFolder, find_run

if TYPE_CHECKING:
    import numpy as np

    from hookloop.selfplay.config import SelfPlayConfig
    from hookloop.selfplay.thinking import Thinker

_CLEAR = "\x1b[2J\x1b[H"


def play(
    run: str,
    *,
    seat: Literal["first", "second"] = "first",
    checkpoint: str = "latest",
    temperature: float | None = None,
    seed: int = 0,
    demo: bool = False,
    delay: float = 0.5,
    letters: bool = False,
    runs_dir: Path = Path("runs"),
) -> int:
    """Play a game against the model of a run, or watch it play itself; 'help' says what can be typed.

    Args:
        run: The run's name, the beginning of it, its path, or latest.
        seat: Whether you move first or second.
        checkpoint: Which weights: latest, best, final, a step, an epoch such as epoch5, a path or a URI.
        temperature: 0 for the model's likeliest moves, the default against a person; 1 to draw them as in training,
            the default in a demo.
        seed: What its draws follow from.
        demo: Let the model play itself.
        delay: Seconds between two moves of a demo.
        letters: Show the pieces as letters.
        runs_dir: The folder of all runs.
    """
    temperature = (1.0 if demo else 0.0) if temperature is None else temperature
    if not 0 <= temperature < math.inf:
        raise ConfigError(f"--temperature must be 0 or more, got {temperature}.")
    if not 0 <= delay < math.inf:
        raise ConfigError(f"--delay must be 0 seconds or more, got {delay}.")
    folder = find_run(runs_dir, run)
    settings = _settings(folder)
    thinker, name = _load(folder, settings, checkpoint)

    import numpy as np

    random = np.random.default_rng(seed)
    where = f"{settings.game.name}, {folder.name} at {name}"
    if demo:
        return _show_demo(where, thinker, temperature, random, delay, in_letters=letters)
    return _play(where, thinker, temperature, random, seat, in_letters=letters)


def _play(
    where: str, thinker: Thinker, temperature: float, random: np.random.Generator, seat: str, *, in_letters: bool
) -> int:
    from hookloop.cli.game_table import GameTable
    from hookloop.selfplay.watching import GameRecord

    record = GameRecord(thinker.game)
    begins = record.state.current_player()
    table = GameTable(
        record,
        thinker,
        answer=lambda: thinker.choose(record.state, temperature=temperature, random=random),
        person=begins if seat == "first" else 1 - begins,
        ask=input,
        say=_say,
        paint=partial(painted, in_letters=in_letters),
    )
    person = table.names[begins if seat == "first" else 1 - begins]
    _say(f"{where}. You are {person} and move {seat}; 'help' says what you can type.")
    if table.play() == "left":
        _say("\nThe game is left unfinished.")
    return EXIT_DONE


def _show_demo(
    where: str, thinker: Thinker, temperature: float, random: np.random.Generator, delay: float, *, in_letters: bool
) -> int:
    from hookloop.selfplay.watching import GameRecord

    record, names = GameRecord(thinker.game), seat_names(thinker.game.get_type().short_name)
    head = _CLEAR if sys.stdout.isatty() else ""
    _say(f"{head}{where}, against itself.\n{painted(record.board, names, in_letters=in_letters)}")
    while not record.state.is_terminal():
        time.sleep(delay)
        record.play(thinker.choose(record.state, temperature=temperature, random=random))
        latest = "  ".join(f"{move.number} {move.text}" for move in record.moves[-8:])
        _say(f"{head}{where}, against itself.\n{painted(record.board, names, in_letters=in_letters)}\n{latest}")
    won = record.state.returns()[0]
    result = "A draw" if won == 0 else f"{names[0] if won > 0 else names[1]} won"
    _say(f"{result} after {len(record.moves)} moves.")
    return EXIT_DONE


def _settings(folder: RunFolder) -> SelfPlayConfig:
    config = folder.read_config()
    if config.workload != "selfplay":
        raise ConfigError(
            f"The run {folder.name!r} ({config.recipe}) plays no game of two players; 'hookloop train connect4' trains "
            "one that does."
        )
    return cast("SelfPlayConfig", read_settings(config.workload, config.settings))


def _load(folder: RunFolder, settings: SelfPlayConfig, checkpoint: str) -> tuple[Thinker, str]:
    """Return what thinks with the weights of a checkpoint, and its name. Imports torch."""
    from hookloop.selfplay.library import load_game

    load_game(settings.game.name)  # before torch: whoever lacks the library learns it at once
    import torch

    from hookloop.checkpoints import CheckpointManager
    from hookloop.selfplay.thinking import load_thinker

    torch.set_num_threads(folder.read_config().threads)
    found, state = CheckpointManager(folder.checkpoints, retention=folder.read_retention()).load(checkpoint)
    return load_thinker(settings, state["workload"]), found.name


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
