"""The RL trainer: it composes environments, policy, losses and hooks, and does nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from hookloop.core import (
    Clocks,
    HookContext,
    HookManager,
    LoopResult,
    Ranks,
    SingleProcess,
    TrainerState,
    TrainingLoop,
    derive_seed,
)
from hookloop.core.rng import rank_seed
from hookloop.core.signals import SECOND
from hookloop.curriculum import Curriculum
from hookloop.errors import ConfigError
from hookloop.rl.collector import Collector
from hookloop.rl.columns import wanted_columns
from hookloop.rl.config import EnvConfig, TrainerConfig
from hookloop.rl.envs import Envs
from hookloop.rl.experience import Experience, merge_specs
from hookloop.rl.figures import Named
from hookloop.rl.learner import Learner
from hookloop.rl.lessons import LessonPlan, find_lesson_envs
from hookloop.rl.losses.base import Loss
from hookloop.rl.optimizer import FlatAdam
from hookloop.rl.policies import Policy
from hookloop.rl.sampling import Sampler, check_arithmetic
from hookloop.rl.slots import SlotCollector, SlotSetup, VtraceLearner, WorkersHook
from hookloop.rl.value_hook import ValueHook
from hookloop.rl.workload import RLWorkload

if TYPE_CHECKING:
    from hookloop.rl.evaluation import PolicyPlayer

Plain = Any

RESULT_VERSION = 1


@dataclass(frozen=True, slots=True)
class TrainResult:
    """How a training run ended; ``version`` changes when a field changes its meaning."""

    version: int
    outcome: str
    env_steps: int
    epochs: int
    episodes: int
    optimizer_steps: int
    seconds: float
    mean_return: float | None
    """Over the last hundred episodes; None if none has finished."""
    loop: LoopResult

    @classmethod
    def of(cls, ended: LoopResult, clocks: Clocks, mean_return: float | None) -> TrainResult:
        """Return how a loop has ended, by its clocks."""
        return cls(
            version=RESULT_VERSION,
            outcome=ended.outcome,
            env_steps=clocks.env_steps,
            epochs=clocks.epochs,
            episodes=clocks.episodes,
            optimizer_steps=clocks.optimizer_steps,
            seconds=clocks.seconds,
            mean_return=mean_return,
            loop=ended,
        )


class Trainer:
    """Trains a policy in environments.

    A trainer of another kind of experience is a subclass that names its own parts: ``collector_type``,
    ``learner_type``, ``workload_type``, and for rollouts that are played as tasks ``slot_collector_type`` and
    ``async_learner_type``.

    Args:
        policy: What acts and learns.
        envs: Where it acts; of several learners, the environments of this one.
        losses: What to minimise, in order; each with a name of its own.
        config: Sizes and rates.
        curriculum: What chooses among the lessons of ``envs``, which are ``LessonEnvs`` then.
        hooks: Anything that should happen besides: hooks in any dialect, or a HookManager, whose ranks are the
            learners of this run.
        seed: The root of all randomness of this run; each learner derives its own from it.
        second_signal: What a second Ctrl-C does: ``raise`` or ``exit``.
        env: The settings the environments were made from, for evaluations in environments of their own.
        slots: Who plays rollouts as tasks; by default they are played here. ``envs`` then wrap its ``SlotEnvs``.
    """

    collector_type: ClassVar[type[Collector]] = Collector
    learner_type: ClassVar[type[Learner]] = Learner
    workload_type: ClassVar[type[RLWorkload]] = RLWorkload
    slot_collector_type: ClassVar[type[SlotCollector]] = SlotCollector
    async_learner_type: ClassVar[type[Learner]] = VtraceLearner

    def __init__(
        self,
        *,
        policy: Policy,
        envs: Envs,
        losses: Sequence[Loss],
        config: TrainerConfig | None = None,
        curriculum: Curriculum | None = None,
        hooks: HookManager | Sequence[object] = (),
        seed: int = 0,
        second_signal: SECOND = "raise",
        env: EnvConfig | None = None,
        slots: SlotSetup | None = None,
    ) -> None:
        self.env = env
        self.slots = slots
        self.config = config = config if config is not None else TrainerConfig()
        self.policy, self.envs, self.losses = policy, envs, list(losses)
        require_distinct(self.losses)
        self.ranks: Ranks = hooks.ranks if isinstance(hooks, HookManager) else SingleProcess()
        _require_one_learner(curriculum, slots, self.ranks)
        segment_length = config.segment_length if policy.is_recurrent else 1
        check_arithmetic(
            num_envs=envs.num_envs,
            horizon=config.horizon,
            num_minibatches=config.num_minibatches,
            segment_length=segment_length,
        )
        self.experience = Experience(
            merge_specs(wanted_columns(policy, envs, self.losses, self.collector_type)),
            num_envs=envs.num_envs,
            horizon=config.horizon,
        )
        self.experience["valid"].fill_(True)
        for loss in self.losses:
            loss.attach_replay_buffer(self.experience)
        self.optimizer = FlatAdam(policy, **config.optimizer.model_dump())
        self.curriculum = curriculum
        lessons = None if curriculum is None else LessonPlan(curriculum, find_lesson_envs(envs), seed=seed)
        self.workload = self._make_workload(seed, segment_length, lessons)
        self.loop = self._make_loop(hooks, seed, second_signal)
        envs.reset(derive_seed(rank_seed(seed, self.ranks.rank), "envs") % 2**31)

    @property
    def hooks(self) -> HookManager:
        """The hooks of this run."""
        return self.loop.hooks

    @property
    def state(self) -> TrainerState:
        """The serialisable state of this run."""
        return self.loop.state

    def add_hook(self, hook: object, **options: object) -> str:
        """Add a hook and return its name."""
        return self.hooks.add(hook, **options)

    def train(self, total_env_steps: int) -> TrainResult:
        """Train until this many environment steps are done in all, earlier calls and attempts included."""
        if total_env_steps < 1:
            raise ConfigError(f"total_env_steps must be at least 1, got {total_env_steps}.")
        self.workload.total_env_steps = total_env_steps
        ended = self.loop.run()
        return TrainResult.of(ended, self.state.clocks, self.workload.mean_return())

    def player(self) -> PolicyPlayer:
        """Return the policy as it is now, for an evaluation; training may go on meanwhile."""
        from hookloop.rl.evaluation import player_of  # a run that is not evaluated does without

        return player_of(self.policy, self.envs, self.env)

    def state_dict(self) -> dict[str, Plain]:
        """Return everything that makes training go on with the same bits."""
        return self.loop.state_dict()

    def load_state_dict(self, saved: Mapping[str, Plain], *, strict: bool = True) -> None:
        """Go on from a saved state; call it before ``train``."""
        self.loop.load_state_dict(saved, strict=strict)

    def _make_workload(self, seed: int, segment_length: int, lessons: LessonPlan | None) -> RLWorkload:
        config, slots, own_seed = self.config, self.slots, rank_seed(seed, self.ranks.rank)
        make_collector = self.collector_type if slots is None else partial(self.slot_collector_type, setup=slots)
        make_learner = self.learner_type if slots is None or slots.mode == "exact" else self.async_learner_type
        collector = make_collector(
            self.envs, self.policy, self.experience, self.losses,
            generator=_generator(own_seed, "act"), segment_length=segment_length, ranks=self.ranks,
        )  # fmt: skip
        sampler = Sampler(
            self.experience, num_minibatches=config.num_minibatches, segment_length=segment_length,
            sampling=config.sampling, alpha=config.priority_alpha, beta=config.priority_beta,
        )  # fmt: skip
        learner = make_learner(
            self.policy, self.losses, self.optimizer, sampler,
            generator=_generator(own_seed, "sample"), update_epochs=config.update_epochs, gamma=config.gamma,
            gae_lambda=config.gae_lambda, accumulate_minibatches=config.accumulate_minibatches, ranks=self.ranks,
        )  # fmt: skip
        return self.workload_type(collector, learner, lessons)

    def _make_loop(self, hooks: HookManager | Sequence[object], seed: int, second_signal: SECOND) -> TrainingLoop:
        given = hooks if isinstance(hooks, HookManager) else list(hooks)
        context = HookContext(state=TrainerState(seed=seed), trainer=self, model=self.policy, optimizer=self.optimizer)
        context.losses, context.experience = self.losses, self.experience
        loop = TrainingLoop(self.workload, given, context=context, second_signal=second_signal)
        for loss in self.losses:
            events = _LossEvents(loss)
            if vars(events):
                loop.hooks.add(events, name=f"loss/{loss.name}", ranks="all")
        if self.slots is not None:
            loop.hooks.add(WorkersHook(self.workload.collector), name="workers", ranks="all")
        if self.config.values:
            loop.hooks.add(ValueHook(self, self.config.values), name="values", ranks="all")
        return loop


class _LossEvents:
    """The ``on_*`` methods of a loss, as a hook; its state is saved with the learner's."""

    def __init__(self, loss: Loss) -> None:
        for name in dir(loss):
            if name.startswith("on_") and callable(getattr(loss, name)):
                setattr(self, name, getattr(loss, name))


def require_distinct(losses: Sequence[Named], example: str = "PPO()") -> None:
    """Refuse a trainer without losses, or with two of one name."""
    if not losses:
        raise ConfigError(f"A trainer needs at least one loss, for example losses=[{example}].")
    names = [loss.name for loss in losses]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"Two losses are named {name!r}; give one of them another with name='...'.")


def _require_one_learner(curriculum: Curriculum | None, slots: SlotSetup | None, ranks: Ranks) -> None:
    if ranks.world_size == 1:
        return
    if curriculum is not None:
        raise ConfigError(
            f"A curriculum chooses by what one learner has played, and this run has {ranks.world_size}; train it with "
            "one process, or leave the curriculum out."
        )
    if slots is not None:
        raise ConfigError(
            f"Workers play for one learner, and this run has {ranks.world_size}, which play for themselves; "
            "leave workers out, or train with one process."
        )


def _generator(seed: int, stream: str) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(seed, stream))
