"""The trainer of sequences: it composes a model, lessons, losses, workers and hooks, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from hookloop.core import HookContext, HookManager, TrainerState, TrainingLoop, derive_seed
from hookloop.core.signals import SECOND
from hookloop.curriculum import Curriculum
from hookloop.errors import ConfigError
from hookloop.pools import InlinePool, MakePerformer, WorkerPool
from hookloop.rl.lessons import LessonPlan
from hookloop.rl.optimizer import FlatAdam
from hookloop.rl.trainer import TrainResult, require_distinct
from hookloop.rl.value_hook import ValueHook
from hookloop.sequences.collector import LessonSlots, SequenceCollector
from hookloop.sequences.config import SequenceConfig
from hookloop.sequences.learner import SequenceLearner
from hookloop.sequences.lessons import make_lessons
from hookloop.sequences.losses import SequenceLoss
from hookloop.sequences.rollout import build_model, performer_maker, vocabulary_of
from hookloop.sequences.workload import SequenceWorkload

if TYPE_CHECKING:
    from hookloop.sequences.player import SequencePlayer

Plain = Any

OpenPool = Callable[[MakePerformer], WorkerPool]


class SequenceTrainer:
    """Trains a transformer on lessons whose responses are rewarded; ``build_trainer`` makes one from settings alone.

    Args:
        config: The settings.
        losses: What to minimise, in order; each with a name of its own.
        open_pool: Makes the pool that draws completions, given what makes its performers; in this process by default.
        hooks: Anything that should happen besides: hooks in any dialect, or a HookManager.
        seed: The root of all randomness of this run.
        second_signal: What a second Ctrl-C does: ``raise`` or ``exit``.
    """

    def __init__(
        self,
        config: SequenceConfig,
        *,
        losses: Sequence[SequenceLoss],
        open_pool: OpenPool = InlinePool,
        hooks: HookManager | Sequence[object] = (),
        seed: int = 0,
        second_signal: SECOND = "raise",
    ) -> None:
        self.config = config
        self.lessons = make_lessons(config.curriculum)
        self.losses = list(losses)
        require_distinct(self.losses, "GRPO()")
        self.vocabulary = vocabulary_of(self.lessons)
        with torch.random.fork_rng(devices=[]):  # torch initialises from the global stream, which is not ours
            torch.manual_seed(derive_seed(seed, "model"))
            # Without dropout there is one mode: what is learned from is what was drawn with.
            self.model = build_model(config.model, self.vocabulary, self.lessons).eval()
        self.optimizer = FlatAdam(self.model, **config.trainer.optimizer.model_dump())
        self.curriculum = Curriculum(config.curriculum)
        self.workload = self._make_workload(seed, open_pool)
        self.loop = self._make_loop(hooks, seed, second_signal)

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
        """Train until this many symbols are drawn in all, earlier calls and attempts included."""
        if total_env_steps < 1:
            raise ConfigError(f"total_env_steps must be at least 1, got {total_env_steps}.")
        self.workload.total_env_steps = total_env_steps
        try:
            ended = self.loop.run()
        finally:
            self.workload.close_pool()
        return TrainResult.of(ended, self.state.clocks, self.workload.mean_return())

    def player(self) -> SequencePlayer:
        """Return the model as it is now, for an evaluation; training may go on meanwhile."""
        from hookloop.sequences.player import SequencePlayer  # a run that is not evaluated does without

        return SequencePlayer(self.model, self.vocabulary, pass_k=self.config.pass_k)

    def state_dict(self) -> dict[str, Plain]:
        """Return everything that makes training go on with the same bits."""
        return self.loop.state_dict()

    def load_state_dict(self, saved: Mapping[str, Plain], *, strict: bool = True) -> None:
        """Go on from a saved state; call it before ``train``."""
        self.loop.load_state_dict(saved, strict=strict)

    def _make_workload(self, seed: int, open_pool: OpenPool) -> SequenceWorkload:
        config = self.config.trainer
        slots = LessonSlots(self.config.curriculum.slots)
        collector = SequenceCollector(
            slots, seed=seed, prompts=config.prompts_per_slot, completions=config.group_size,
            temperature=config.temperature,
        )  # fmt: skip
        learner = SequenceLearner(
            self.model, self.losses, self.optimizer,
            generator=torch.Generator().manual_seed(derive_seed(seed, "sample")),
            update_epochs=config.update_epochs, minibatch_groups=config.minibatch_groups,
            temperature=config.temperature, refresh_reference_every=config.refresh_reference_every,
        )  # fmt: skip

        def open_with_lessons() -> WorkerPool:
            return open_pool(performer_maker(self.config.model, self.lessons, torch.get_num_threads()))

        return SequenceWorkload(collector, learner, LessonPlan(self.curriculum, slots, seed=seed), open_with_lessons)

    def _make_loop(self, hooks: HookManager | Sequence[object], seed: int, second_signal: SECOND) -> TrainingLoop:
        given = hooks if isinstance(hooks, HookManager) else list(hooks)
        context = HookContext(state=TrainerState(seed=seed), trainer=self, model=self.model, optimizer=self.optimizer)
        context.losses = self.losses
        loop = TrainingLoop(self.workload, given, context=context, second_signal=second_signal)
        if self.config.trainer.values:
            loop.hooks.add(ValueHook(self, self.config.trainer.values), name="values", ranks="all")
        return loop
