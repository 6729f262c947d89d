"""The supervised trainer: it composes model, data, loss and hooks, and does nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hookloop.core import (
    HookContext,
    HookManager,
    LoopResult,
    Ranks,
    SingleProcess,
    TrainerState,
    TrainingLoop,
    derive_seed,
)
from hookloop.core.registry import find_hook_type
from hookloop.core.rng import rank_seed
from hookloop.core.signals import SECOND
from hookloop.errors import ConfigError
from hookloop.supervised.accumulator import GradientAccumulator
from hookloop.supervised.data import DataLoaderFactory, Source, TaskSpec, UniversalDataModule
from hookloop.supervised.data.tasks import loss_of_modality
from hookloop.supervised.gradient_monitor import GradientMonitor
from hookloop.supervised.hooks_protocol import DefaultHooks
from hookloop.supervised.learning_rates import make_factor
from hookloop.supervised.losses import AUTO, LossFunction, LossStrategy
from hookloop.supervised.metrics import MetricsTracker
from hookloop.supervised.objective import Objective
from hookloop.supervised.optimizers import MakeOptimizer, make_optimizer
from hookloop.supervised.result import RESULT_VERSION, TrainResult
from hookloop.supervised.seeds import deterministic_mode, set_seed
from hookloop.supervised.training_config import TrainingConfig, TrainingSettings
from hookloop.supervised.validation import ValidationHook
from hookloop.supervised.workload import SupervisedWorkload

Live = Any
Plain = Any
Loss = str | LossStrategy | LossFunction


class Trainer:
    """Trains a model on data.

    Args:
        model: Any module.
        config: What the model was made with, of any type; ``pad_token_id`` and ``modality`` are looked up in it.
        training_config: How to train.
        hooks: What else should happen: one object with ``on_*`` methods, several in any dialect, or a HookManager,
            whose ranks are the learners of this run.
        task_spec: What is to be learned from which fields; the loss follows from it.
        optimizer: A torch optimizer, or a function that makes one of the parameters; by default the settings say.
        loss: A strategy, its name, or a function of scores and targets; by default the settings say.
        second_signal: What a second Ctrl-C does: ``raise`` or ``exit``.
    """

    def __init__(
        self,
        model: nn.Module,
        config: object = None,
        training_config: TrainingSettings | None = None,
        hooks: HookManager | Sequence[object] | object | None = None,
        *,
        task_spec: TaskSpec | None = None,
        optimizer: torch.optim.Optimizer | MakeOptimizer | None = None,
        loss: Loss | None = None,
        second_signal: SECOND = "raise",
    ) -> None:
        self.model = model
        self.config = config
        self.training_config = settings = training_config if training_config is not None else TrainingConfig()
        self.task_spec = task_spec
        self.device = _place(model, settings.device)
        self.ranks: Ranks = hooks.ranks if isinstance(hooks, HookManager) else SingleProcess()
        self._checkpoints = _checkpoint_hook(settings)
        self.metrics_tracker = MetricsTracker()
        self.objective = Objective(
            model, self._loss(loss), self._loss_options(), precision=settings.precision, device=self.device,
            is_compiled=settings.compile,
        )  # fmt: skip
        self.optimizer = make_optimizer(model, settings, optimizer)
        self.accumulator = GradientAccumulator(
            model, self.optimizer, accumulation_steps=settings.gradient_accumulation_steps,
            max_grad_norm=settings.max_grad_norm,
            scaler=torch.amp.GradScaler(self.device.type) if settings.precision == "fp16" else None, ranks=self.ranks,
        )  # fmt: skip
        self.gradient_monitor = (
            GradientMonitor(self.accumulator, halt_after=settings.halt_after_bad_gradients)
            if settings.halt_after_bad_gradients
            else None
        )
        self.workload = SupervisedWorkload(
            model, self.objective, self.accumulator, data_seed=derive_seed(settings.seed, "data"),
            train_metrics=settings.train_metrics, ranks=self.ranks,
        )  # fmt: skip
        self.loop = self._make_loop(hooks, second_signal)
        self._has_run = False

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

    def train(
        self,
        train_data: Live,
        val_data: Live = None,
        resume_from: str | Path | None = None,
        *,
        epochs: int | None = None,
    ) -> TrainResult:
        """Train until all epochs are done, earlier calls and attempts included.

        Args:
            train_data: A dataset, a DataLoader, tensors, or anything that yields samples or batches.
            val_data: What to validate on; nothing is validated without it.
            resume_from: A checkpoint to go on from: ``latest``, ``best``, a path, an epoch such as ``epoch5``.
            epochs: How many in all; by default the settings say.
        """
        self.prepare(train_data, val_data, epochs=epochs)
        return self.run(resume_from)

    def run(self, resume_from: str | Path | None = None) -> TrainResult:
        """Train on the data that everything was prepared for."""
        self._choose_beginning(resume_from)
        if not self._has_run and resume_from is None and not any(self.state.clocks.reading().values()):
            set_seed(rank_seed(self.training_config.seed, self.ranks.rank))
        self._has_run = True
        self.model.train()
        try:
            with deterministic_mode(self.training_config.deterministic):
                ended = self.loop.run()
        finally:
            self.workload.release_data()
        return self._result(ended)

    def prepare(self, train_data: Live, val_data: Live = None, *, epochs: int | None = None) -> None:
        """Get everything ready to train on these data, without training."""
        settings = self.training_config
        if isinstance(train_data, UniversalDataModule):
            train_data, val_data = train_data.train_data, val_data or train_data.val_data
        elif self.task_spec is not None:
            module = UniversalDataModule(self.task_spec, train_data, val_data, val_share=0, seed=settings.seed)
            train_data, val_data = module.train_data, module.val_data
        source = self._factory(settings.batch_size, settings.drop_last).make(train_data, shuffle=settings.shuffle)
        val_source = None
        if val_data is not None:
            factory = self._factory(settings.val_batch_size or settings.batch_size, False)
            val_source = factory.make(val_data, shuffle=False, what="validation data")
        self.workload.total_epochs = epochs if epochs is not None else settings.epochs
        self.workload.max_steps = settings.max_steps
        self.workload.use(source, val_source)
        self.accumulator.factor = make_factor(settings, self.total_steps(source))

    def total_steps(self, source: Source) -> int | None:
        """Return the optimizer steps of the whole run; None if nobody knows."""
        max_steps = self.training_config.max_steps
        if source.batches is None:
            return max_steps
        per_epoch = -(-source.batches // self.training_config.gradient_accumulation_steps)
        steps = per_epoch * self.workload.total_epochs
        return steps if max_steps is None else min(steps, max_steps)

    def state_dict(self) -> dict[str, Plain]:
        """Return everything that makes training go on with the same bits."""
        return self.loop.state_dict()

    def load_state_dict(self, saved: Mapping[str, Plain], *, strict: bool = True) -> None:
        """Go on from a saved state; call it before ``train``."""
        self.loop.load_state_dict(saved, strict=strict)

    def _result(self, ended: LoopResult) -> TrainResult:
        clocks, rows, settings = self.state.clocks, self.metrics_tracker.rows, self.training_config
        best = self.metrics_tracker.best(settings.monitor, settings.mode)
        metric = settings.monitor if best is not None else "loss"
        best = best if best is not None else self.metrics_tracker.best("loss")
        return TrainResult(
            version=RESULT_VERSION,
            outcome=ended.outcome,
            epochs=clocks.epochs,
            optimizer_steps=clocks.optimizer_steps,
            seconds=clocks.seconds,
            final_loss=rows[-1].get("loss") if rows else None,
            best_epoch=None if best is None else best["epoch"],
            best_metric=None if best is None else best[metric],
            checkpoint_path=_path(self.state.latest_checkpoint_uri),
            rows=tuple(rows),
            loop=ended,
        )

    def _make_loop(self, hooks: HookManager | Sequence[object] | object | None, second: SECOND) -> TrainingLoop:
        context = HookContext(
            state=TrainerState(seed=self.training_config.seed), trainer=self, model=self.model, optimizer=self.optimizer
        )
        given = hooks if isinstance(hooks, HookManager) else _as_list(hooks)
        loop = TrainingLoop(self.workload, given, context=context, second_signal=second)
        loop.hooks.add(ValidationHook(self.workload.validate, self.training_config.validate_every_epochs))
        loop.hooks.add(self.metrics_tracker)
        for hook in (self.gradient_monitor, self._checkpoints):
            if hook is not None:
                loop.hooks.add(hook)
        return loop

    def _choose_beginning(self, resume_from: str | Path | None) -> None:
        if self._checkpoints is not None:
            # What this trainer itself has saved is no earlier run: it goes on from there.
            selector = "latest" if resume_from is None and self._has_run else resume_from
            self._checkpoints.go_on_from(None if selector is None else str(selector))
        elif resume_from is not None:
            raise ConfigError(
                f"resume_from={str(resume_from)!r} needs a folder to save in: set checkpoint_dir in the "
                "TrainingConfig, or add a CheckpointHook(..., resume=...) to the hooks."
            )

    def _factory(self, batch_size: int, drop_last: bool) -> DataLoaderFactory:
        settings, task = self.training_config, self.task_spec
        return DataLoaderFactory(
            batch_size=batch_size,
            seed=self.workload.data_seed,
            drop_last=drop_last,
            num_workers=settings.num_workers,
            collate=settings.collator or (task.collator_name if task is not None else None),
            pad_token_id=self._pad_token_id(),
            device=None if self.device.type == "cpu" else self.device,
        )

    def _loss(self, given: Loss | None) -> Loss:
        if given is not None:
            return given
        if self.training_config.loss != AUTO:
            return self.training_config.loss
        if self.task_spec is not None:
            return self.task_spec.loss_name
        modality = _look_up(self.config, "modality")
        return AUTO if modality is None else loss_of_modality(modality)

    def _loss_options(self) -> dict[str, Live]:
        return {"pad_token_id": self._pad_token_id(), "label_smoothing": self.training_config.label_smoothing}

    def _pad_token_id(self) -> int | None:
        if self.task_spec is not None and self.task_spec.pad_token_id is not None:
            return self.task_spec.pad_token_id
        found = _look_up(self.config, "pad_token_id")
        return found if isinstance(found, int) else None


def _checkpoint_hook(settings: TrainingSettings) -> Live | None:
    """Return the hook that saves, by its registered name: a workload itself does not write."""
    if settings.checkpoint_dir is None:
        return None
    return find_hook_type("checkpoint")(
        settings.checkpoint_dir,
        every_epochs=settings.save_every_epochs,
        every_steps=settings.save_every_steps,
        keep_last=settings.keep_last,
        keep_best=settings.keep_best,
        metric=settings.monitor,
        mode=settings.mode,
    )


def _as_list(hooks: Sequence[object] | object | None) -> list[object]:
    if hooks is None or type(hooks) is DefaultHooks:
        return []
    return list(hooks) if isinstance(hooks, list | tuple) else [hooks]


def _look_up(config: object, name: str) -> Live:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)


def _place(model: nn.Module, device: str | None) -> torch.device:
    if device is not None:
        model.to(device)
    return next((parameter.device for parameter in model.parameters()), torch.device(device or "cpu"))


def _path(uri: str | None) -> str | None:
    return None if uri is None else uri.removeprefix("file://")
