"""Which columns an experience needs, by who asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookloop.rl.envs import Envs
from hookloop.rl.experience import OBSERVATIONS, ExperienceSpec
from hookloop.rl.losses.base import Loss
from hookloop.rl.policies import Policy
from hookloop.rl.specs import ArraySpec

if TYPE_CHECKING:
    from hookloop.rl.collector import Collector


def wanted_columns(
    policy: Policy, envs: Envs, losses: Sequence[Loss], collector: type[Collector]
) -> dict[str, ExperienceSpec]:
    """Return who wants what stored."""
    action = envs.action
    wanted: dict[str, ArraySpec] = {"actions": ArraySpec(tuple(action.shape), action.dtype), **collector.columns}
    for name, spec in envs.observation.arrays.items():
        wanted[f"{OBSERVATIONS}/{name}" if envs.observation.is_dict else OBSERVATIONS] = spec
    if envs.action_masks is not None:
        wanted["masks"] = ArraySpec(tuple(envs.action_masks.shape[1:]), "bool")
    if policy.is_recurrent:
        wanted["starts"] = ArraySpec((), "bool")
    specs: dict[str, ExperienceSpec] = {"the environment": wanted, "the policy": policy.experience_spec()}
    return {**specs, **{f"the loss {loss.name!r}": loss.get_experience_spec() for loss in losses}}
