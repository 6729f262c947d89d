"""Collection by tasks: rollouts are gathered, written side by side, and told to the loop step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hookloop.core import Ranks
from hookloop.rl.collector import Collector, RolloutLoop, episode_stats, with_finite_returns, with_leaves
from hookloop.rl.envs import Envs, Episode
from hookloop.rl.experience import Experience
from hookloop.rl.losses.base import Loss, RolloutStep
from hookloop.rl.policies import Policy
from hookloop.rl.slots.gathering import Gathering, Rollout
from hookloop.rl.slots.setup import SlotSetup

Plain = Any


class SlotCollector(Collector):
    """Fills the experience of one epoch with rollouts that tasks have played.

    To the loop, its hooks and the losses it is as if the steps were taken here, one after the other.

    Args:
        envs: As the learner sees them: ``SlotEnvs`` with their wrappers.
        policy: Whose weights play.
        experience: Where transitions go.
        losses: Those that store something of their own are asked at each step.
        generator: Gives each rollout the key of its random numbers.
        segment_length: Steps after which a recurrent policy's memory is kept, for training.
        ranks: The learners of the run; only one can have its rollouts played as tasks.
        setup: Who plays the slots, and how.
    """

    def __init__(
        self,
        envs: Envs,
        policy: Policy,
        experience: Experience,
        losses: Sequence[Loss],
        *,
        generator: torch.Generator,
        segment_length: int = 1,
        ranks: Ranks | None = None,
        setup: SlotSetup,
    ) -> None:
        super().__init__(
            envs, policy, experience, losses, generator=generator, segment_length=segment_length, ranks=ranks
        )
        self.versions = [0] * setup.envs.slots
        """Of the weights that played each part of the experience."""
        self.setup = setup
        self._slot_envs = setup.envs
        self.gathering: Gathering = setup.gather(envs, policy, generator, self.weights)
        self._last_values = torch.zeros(envs.num_envs)

    @property
    def exactness(self) -> str:
        """What a resume promises; ``approximate`` where rollouts run ahead of learning."""
        return "approximate" if self.setup.mode == "async" else super().exactness

    @property
    def inexact_because(self) -> str:
        """Why a resume is not bit-exact; empty if it is."""
        if self.setup.mode == "async":
            return "rollouts are taken in as they come, and those under way are not saved"
        return super().inexact_because

    def weights(self) -> Mapping[str, Tensor]:
        """Return what the coming rollouts are played with."""
        return self.policy.state_dict()

    def collect(self, loop: RolloutLoop) -> None:
        """Fill the experience with a rollout of every slot, telling the loop of each step."""
        self.experience.begin()
        with loop.rollout():
            rollouts = self.gathering.next_rollouts()
            self._write(rollouts)
            self._tell(rollouts, loop)

    def last_values(self) -> Tensor:
        """Return the values of the observations the next step would act on."""
        return self._last_values

    def metrics(self) -> dict[str, float]:
        """Return how the workers are."""
        return self.gathering.metrics()

    def close(self) -> None:
        """End the workers; the next collection starts new ones."""
        self.gathering.close()

    def place(self) -> dict[str, Plain]:
        """Return where every slot stands."""
        return {"envs": self.envs.state_dict(), "iteration": self.gathering.iteration}

    def go_to(self, saved: Mapping[str, Plain]) -> None:
        """Play on from where the slots stood."""
        self.envs.load_state_dict(saved["envs"])
        self.gathering.iteration = saved["iteration"]
        self.gathering.forget()

    def _write(self, rollouts: Sequence[Rollout]) -> None:
        """Write the rollouts side by side."""
        experience, width = self.experience, self._slot_envs.envs_per_slot
        for part, rollout in enumerate(rollouts):
            rows = slice(part * width, (part + 1) * width)
            for name, column in rollout.value["columns"].items():
                experience.arrays[name][:, rows] = column
            self._last_values[rows] = torch.as_tensor(rollout.value["last_values"])
        self.versions = [rollout.version for rollout in rollouts]
        if self.policy.is_recurrent:
            memories = zip(*(rollout.value["memory"] for rollout in rollouts), strict=True)
            self._segment_states = [self._joined(parts) for parts in memories]

    def _tell(self, rollouts: Sequence[Rollout], loop: RolloutLoop) -> None:
        experience = self.experience
        ended = _episodes_by_step(rollouts, self._slot_envs.envs_per_slot)
        env_steps = [sum(counts) for counts in zip(*(rollout.value["env_steps"] for rollout in rollouts), strict=True)]
        finished: list[Episode] = []
        for step in range(experience.horizon):
            self._ask_losses(step, loop)
            experience.steps = step + 1
            self._slot_envs.finished = ended.get(step, [])
            if self._slot_envs.finished:
                finished.extend(self._note(with_finite_returns(self._slot_envs.finished)))
            loop.step(env_steps=env_steps[step], episodes=len(self._slot_envs.finished))
            if loop.state.stop_rollout:
                self._cut_off_after(step)
                break
        loop.state.rollout_stats = dict(episode_stats(finished))

    def _cut_off_after(self, step: int) -> None:
        """Leave out the steps that were played after the rollout was to end."""
        if step + 1 < self.experience.horizon:
            self._last_values = self.setup.collector_type.values_before(self.experience, step + 1)

    def _ask_losses(self, step: int, loop: RolloutLoop) -> None:
        if self._storing:
            experience = self.experience
            masks = experience.rows["masks"][step] if "masks" in experience else None
            asked = RolloutStep(step, experience.observation_at(step), masks, experience)
            for loss in self._storing:
                loss.rollout(asked, loop.state)

    def _joined(self, parts: Sequence[Sequence[Tensor]]) -> Any:
        """Join the memories of all slots at the start of a segment."""
        return with_leaves(self._state, [torch.cat(leaf) for leaf in zip(*parts, strict=True)])


def _episodes_by_step(rollouts: Sequence[Rollout], width: int) -> dict[int, list[Episode]]:
    """Return the episodes that ended on each step, by environment."""
    ended: dict[int, list[Episode]] = {}
    for part, rollout in enumerate(rollouts):
        for step, env_index, return_, length, infos in rollout.value["episodes"]:
            ended.setdefault(step, []).append(Episode(part * width + env_index, return_, length, infos))
    return ended
