"""From settings to a trainer of self-play."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch

from hookloop.core import HookManager, derive_seed
from hookloop.core.signals import SECOND
from hookloop.errors import ConfigError
from hookloop.pools import MakePerformer
from hookloop.rl.losses import PPO
from hookloop.rl.policies import MlpActorCritic, Policy
from hookloop.rl.slots import SlotSetup, envs_in_slot, make_setup
from hookloop.rl.specs import DiscreteActions
from hookloop.selfplay.collecting import GameCollector
from hookloop.selfplay.config import GameConfig, NetworkConfig, SelfPlayConfig
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.network import BoardNetwork, WindowNetwork, move_planes
from hookloop.selfplay.past_versions import PastVersions
from hookloop.selfplay.performing import GamePerformer
from hookloop.selfplay.slots import GameSlotEnvs
from hookloop.selfplay.trainer import SelfPlayTrainer
from hookloop.selfplay.turning import symmetry_of


def build_trainer(
    config: SelfPlayConfig,
    *,
    hooks: HookManager | Sequence[object] = (),
    seed: int = 0,
    second_signal: SECOND = "raise",
    slots: SlotSetup | None = None,
) -> SelfPlayTrainer:
    """Build everything a run needs; every random number in it follows from ``seed``.

    Args:
        config: The settings.
        hooks: What else should happen.
        seed: The root of all randomness.
        second_signal: What a second Ctrl-C does.
        slots: Who plays the games as tasks; by default the settings say it.
    """
    game = config.game
    if slots is None and config.workers is not None:
        slots = build_slots(config)
    envs = make_games(game, game.num_envs if slots is None else 1)
    trainer = SelfPlayTrainer(
        policy=build_policy(config.network, envs, seed=derive_seed(seed, "policy")),
        envs=envs if slots is None else slots.envs,
        losses=[PPO(**config.ppo.model_dump(exclude={"kind"}))],
        config=config.trainer,
        hooks=hooks,
        seed=seed,
        second_signal=second_signal,
        slots=slots,
    )
    wanted = config.opponents
    num_games = past_games(config, game.num_envs)
    if num_games:
        past = PastVersions(
            trainer.policy, num_games, capacity=wanted.capacity, every_epochs=wanted.every_epochs,
            seed=derive_seed(seed, "opponents"),
        )  # fmt: skip
        trainer.play_against(past)
    return trainer


def make_games(config: GameConfig, num_envs: int) -> GameEnvs:
    """Make so many games as the settings say."""
    return GameEnvs(config.name, num_envs, max_moves=config.max_moves, opening_moves=config.opening_moves)


def build_policy(config: NetworkConfig, envs: GameEnvs, *, seed: int = 0) -> Policy:
    """Build a policy that plays a game: convolutions for boards, plain layers for rows of numbers."""
    action = DiscreteActions(envs.num_moves)
    shape = envs.observation.array.shape
    generator = torch.Generator().manual_seed(seed)
    if config.from_mover and (config.kind != "residual" or len(shape) != 3):
        raise ConfigError(
            f"Only a residual network turns a board, got network.from_mover=true with network.kind={config.kind} and "
            f"observations of shape {shape}; set network.from_mover=false."
        )
    if config.kind == "layers" or len(shape) != 3:
        layers = MlpActorCritic(
            envs.observation, action, hidden=config.hidden, activation="relu", generator=generator
        )  # fmt: skip
        return Policy(layers, action, envs.observation)
    if config.kind == "windows":
        windows = WindowNetwork(
            shape, action.n, window=config.window, channels=config.channels, hidden=config.hidden, generator=generator
        )
        return Policy(windows, action, envs.observation)
    game = envs.game.get_type().short_name
    network = BoardNetwork(
        shape,
        action.n,
        planes=move_planes(game, action.n, shape[1] * shape[2]),
        symmetry=symmetry_of(game) if config.from_mover else None,
        blocks=config.blocks,
        channels=config.channels,
        generator=generator,
    )
    return Policy(network, action, envs.observation)


def past_games(config: SelfPlayConfig, num_envs: int) -> int:
    """Return in how many of so many games that are played together a past version plays."""
    return math.ceil(config.opponents.share * num_envs)


def performer_maker(config: SelfPlayConfig) -> MakePerformer:
    """Return what makes, in each worker, what plays the slots of a run."""
    num_envs = envs_in_slot(config, config.game.num_envs)
    return partial(
        GamePerformer,
        partial(make_games, config.game, num_envs),
        partial(build_policy, config.network),
        horizon=config.trainer.horizon,
        past_games=past_games(config, num_envs),
    )


def build_slots(config: SelfPlayConfig) -> SlotSetup:
    """Build what plays the games of a run as tasks."""
    game = config.game
    make_performer = performer_maker(config)
    envs = GameSlotEnvs(make_games(game, 1), num_envs=game.num_envs, slots=config.slots)
    return make_setup(config, envs, make_performer, collector_type=GameCollector)
