"""How strong the recipes of games become, and in which time.

Each seed is trained to the end of the recipe, without a league, so that the time is that of training. Then the network
plays its best moves against opponents that never change; tic-tac-toe is played out against every reply as well.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from hookloop.recipes import selfplay as recipes
from hookloop.selfplay import NetworkPlayer, build_trainer, make_opponent, play_all_lines, play_match
from hookloop.selfplay.ratings import wilson_interval

SEARCHES = ("random", "greedy", "search-2")
RECIPES = {"connect4": (400, SEARCHES), "tictactoe": (400, SEARCHES), "shogi": (200, SEARCHES[:2])}
"""How many games are played against whom; to search shogi takes too long."""


def print_strength(recipe: str, seeds: Sequence[int], total_env_steps: int | None) -> None:
    """Train each seed and print the table, row by row."""
    columns = ["seed", "time", "CPU time", "moves", "games", *RECIPES[recipe][1]]
    columns += ["lines lost"] if recipe == "tictactoe" else []
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)
    for seed in seeds:
        print(measure(recipe, seed, total_env_steps), flush=True)


def measure(recipe: str, seed: int, total_env_steps: int | None) -> str:
    """Train one seed and return its row of the table."""
    config = getattr(recipes, recipe)()
    trainer = build_trainer(config, seed=seed)
    wall, cpu = time.perf_counter(), time.process_time()
    trainer.train(total_env_steps or config.total_env_steps)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    player, game = NetworkPlayer(trainer.policy), config.game.name
    cells = [str(seed), f"{wall:.0f} s", f"{cpu:.0f} s", str(trainer.state.clocks.env_steps), str(trainer.tally.games)]
    games, opponents = RECIPES[recipe]
    for name in opponents:
        opponent = make_opponent(name, seed=1)
        score = play_match(game, player, opponent, games=games, max_moves=config.game.max_moves)
        low, high = wilson_interval(score.mean, score.games)
        cells.append(f"{score.mean:.1%} ({low:.0%} to {high:.0%})")
    if recipe == "tictactoe":
        lines = play_all_lines(game, player)
        cells.append(f"{lines.losses} of {lines.games}")
    return f"| {' | '.join(cells)} |"
