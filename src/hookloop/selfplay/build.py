"""From settings to a trainer of self-play."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from hookloop.core import HookManager, derive_seed
from hookloop.core.signals import SECOND
from hookloop.errors import ConfigError
from hookloop.rl.losses import PPO
from hookloop.rl.policies import Policy, make_policy
from hookloop.rl.slots import RolloutPerformer, SlotSetup, envs_in_slot, make_setup
from hookloop.rl.specs import DiscreteActions
from hookloop.selfplay.collecting import GameCollector
from hookloop.selfplay.config import NetworkConfig, SelfPlayConfig
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.network import BoardNetwork, move_planes
from hookloop.selfplay.slots import GameSlotEnvs
from hookloop.selfplay.trainer import SelfPlayTrainer


def build_trainer(
    config: SelfPlayConfig,
    *,
    hooks: HookManager | Sequence[object] = (),
    seed: int = 0,
    second_signal: SECOND = "raise",
) -> SelfPlayTrainer:
    """Build everything a run needs; every random number in it follows from ``seed``.

    Args:
        config: The settings.
        hooks: What else should happen.
        seed: The root of all randomness.
        second_signal: What a second Ctrl-C does.
    """
    game = config.game
    slots = None if config.workers is None else build_slots(config)
    envs = GameEnvs(game.name, game.num_envs if slots is None else 1, max_moves=game.max_moves)
    return SelfPlayTrainer(
        policy=build_policy(config.network, envs, seed=derive_seed(seed, "policy")),
        envs=envs if slots is None else slots.envs,
        losses=[PPO(**config.ppo.model_dump(exclude={"kind"}))],
        config=config.trainer,
        hooks=hooks,
        seed=seed,
        second_signal=second_signal,
        slots=slots,
    )


def build_policy(config: NetworkConfig, envs: GameEnvs, *, seed: int = 0) -> Policy:
    """Build a policy that plays a game: convolutions for boards, plain layers for rows of numbers."""
    action = DiscreteActions(envs.num_moves)
    shape = envs.observation.array.shape
    if config.kind == "layers" or len(shape) != 3:
        return make_policy(envs.observation, action, hidden=config.hidden, activation="relu", seed=seed)
    network = BoardNetwork(
        shape,
        action.n,
        planes=move_planes(envs.game.get_type().short_name, action.n, shape[1] * shape[2]),
        blocks=config.blocks,
        channels=config.channels,
        generator=torch.Generator().manual_seed(seed),
    )
    return Policy(network, action, envs.observation)


def build_slots(config: SelfPlayConfig) -> SlotSetup:
    """Build what plays the games of a run as tasks."""
    if config.rollout_mode == "async":
        raise ConfigError(
            "rollout_mode is 'async', but how old moves count now is not known for games, whose advantages have signs; "
            "use rollout_mode=exact."
        )
    game, horizon = config.game, config.trainer.horizon
    num_envs = envs_in_slot(config, game.num_envs)
    make_performer = partial(
        RolloutPerformer,
        partial(GameEnvs, game.name, num_envs, max_moves=game.max_moves),
        partial(build_policy, config.network),
        collector_type=GameCollector,
        horizon=horizon,
    )
    envs = GameSlotEnvs(GameEnvs(game.name, 1), num_envs=game.num_envs, slots=config.slots)
    return make_setup(config, envs, make_performer, collector_type=GameCollector)
