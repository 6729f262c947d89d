"""Policies that play: episodes with fixed seeds in environments of their own, for evaluations and replays."""

from hookloop.rl.evaluation.player import Normalisation, PolicyPlayer, player_of

__all__ = ["Normalisation", "PolicyPlayer", "player_of"]
