"""Games as tasks, seen from where they are played: the policy's weights come, and with them a past version's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from torch import Tensor

from hookloop.errors import WorkloadError
from hookloop.rl.slots.performing import MakePolicy, RolloutPerformer, SlotPlayer
from hookloop.selfplay.collecting import GameCollector
from hookloop.selfplay.games import GameEnvs
from hookloop.selfplay.past_versions import PastPlayer

_PAST = "opponent."
"""What the names of a past version's weights begin with."""


def with_past(weights: Mapping[str, Tensor], past: PastPlayer | None) -> dict[str, Tensor]:
    """Return the weights of a policy together with those of the past version that plays, if there is one."""
    joined = dict(weights)
    if past is not None and past.is_playing:
        joined |= {f"{_PAST}{name}": tensor for name, tensor in past.policy.state_dict().items()}
    return joined


class GamePerformer(RolloutPerformer):
    """Plays rollouts of games, against a past version where one has come with the weights.

    Args:
        make_games: Makes the games of one slot.
        make_policy: Makes the policy that plays them.
        horizon: Moves of a rollout in each game.
        past_games: In how many games of each slot past versions play.
    """

    def __init__(
        self, make_games: Callable[[], GameEnvs], make_policy: MakePolicy, *, horizon: int, past_games: int = 0
    ) -> None:
        super().__init__(make_games, make_policy, collector_type=GameCollector, horizon=horizon)
        self._past = PastPlayer(self.policy, past_games) if past_games else None

    def take_weights(self, version: int, tensors: Mapping[str, Tensor]) -> None:
        """Play with these weights from now on."""
        own = {name: tensor for name, tensor in tensors.items() if not name.startswith(_PAST)}
        past = {name.removeprefix(_PAST): tensor for name, tensor in tensors.items() if name not in own}
        super().take_weights(version, own)
        if self._past is not None:
            self._past.take(past or None)
        elif past:
            raise WorkloadError(
                "Weights of a past version have come to where they play in no game; "
                "make the GamePerformer with past_games of at least 1, or play without opponents."
            )

    def make_player(self, slot: int) -> SlotPlayer:
        """Make what plays the rollouts of a slot."""
        player = super().make_player(slot)
        collector = cast("GameCollector", player.collector)
        collector.opponents, collector.slot = self._past, slot
        return player
