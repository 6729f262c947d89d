"""Supervised learning as a workload of the loop: an epoch is one pass over the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from hookloop.core import Ranks, SingleProcess, TrainingLoop, derive_seed
from hookloop.core.global_random import seed_global_random
from hookloop.core.rng import rank_seed
from hookloop.errors import ConfigError, HookStateError
from hookloop.supervised.accumulator import GradientAccumulator
from hookloop.supervised.data.moving import samples_in
from hookloop.supervised.data.source import Source
from hookloop.supervised.meters import Meter
from hookloop.supervised.metrics import finite
from hookloop.supervised.objective import Objective
from hookloop.supervised.optimizers import load_optimizer, save_optimizer
from hookloop.supervised.validation import PREFIX, ValidationLoop, summary

Plain = Any


class SupervisedWorkload:
    """Trains a model on a source of batches; can leave after any batch, and goes on there.

    Args:
        model: What learns.
        objective: What is minimised.
        accumulator: How the weights are stepped.
        data_seed: What the order of the data follows from.
        train_metrics: Whether accuracy is measured on training batches too, which costs a second forward pass.
        ranks: The learners of the run, each of which trains on its share of every batch.
    """

    parts: ClassVar[Mapping[str, tuple[str, ...]]] = {"model": ("model",), "optimizer": ("optimizer",)}
    progress_clock: ClassVar[str] = "minibatches"

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        accumulator: GradientAccumulator,
        *,
        data_seed: int = 0,
        train_metrics: bool = False,
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks: Ranks = SingleProcess() if ranks is None else ranks
        self.model = model
        self.objective = objective
        self.accumulator = accumulator
        self.validation = ValidationLoop(model, objective)
        self.data_seed = data_seed
        self.total_epochs = 0
        self.max_steps: int | None = None
        self.cursor = 0
        """Batches of the running epoch that are done."""
        self.loss = Meter()
        self.right = Meter() if train_metrics else None
        self._source: Source | None = None
        self._val_source: Source | None = None
        self._fingerprint: dict[str, Plain] | None = None

    @property
    def exactness(self) -> str:
        """What a resume promises: ``bit-exact``, or ``learner-exact`` if the data cannot be gone through again."""
        return "bit-exact" if self._source is None else self._source.exactness

    @property
    def inexact_because(self) -> str:
        """Why a resume is not bit-exact; empty if it is."""
        return "" if self._source is None else self._source.inexact_because

    @property
    def source(self) -> Source:
        """Where the batches come from."""
        if self._source is None:
            raise ConfigError("There is no training data yet; call train(train_data), or prepare(train_data) first.")
        return self._source

    @property
    def is_within_epoch(self) -> bool:
        """Whether the running epoch has been begun and is not done."""
        batches = self.source.batches
        return self.cursor > 0 and (batches is None or self.cursor < batches)

    def use(self, source: Source, val_source: Source | None = None) -> None:
        """Train on this source from now on; of several learners, on a share of it."""
        if self.ranks.world_size > 1:
            _share(source, self.ranks)
        if self._fingerprint is not None:
            _require_same_data(self._fingerprint, source.fingerprint, is_within_epoch=self.cursor > 0)
        self._source, self._val_source = source, val_source
        source.seed = self.data_seed

    def release_data(self) -> None:
        """End what the sources have running, such as worker processes; they begin anew when they are read again."""
        for source in (self._source, self._val_source):
            close = getattr(source, "close", None)
            if close is not None:
                close()

    def is_finished(self, loop: TrainingLoop) -> bool:
        """Tell whether all epochs, or all steps, are done."""
        clocks = loop.clocks
        is_at_end = self.max_steps is not None and clocks.optimizer_steps >= self.max_steps
        return clocks.epochs >= self.total_epochs or is_at_end

    def run_epoch(self, loop: TrainingLoop) -> bool | None:
        """Train on each batch once, from the cursor on, and leave the epoch's statistics in the state."""
        with loop.train_phase():
            loop.state.mb_idx = self.cursor
            is_whole = self._train(loop)
            if is_whole:
                loop.update_epoch_done()
        if not is_whole:
            return False
        metrics = self._metrics()
        loop.state.loss_stats = finite(metrics)  # what is saved must be finite; what is shown need not be
        loop.context.metrics = metrics
        self.cursor = 0
        self.loss.reset()
        self.accumulator.norms.reset()
        if self.right is not None:
            self.right.reset()
        return None

    def validate(self, loop: TrainingLoop) -> dict[str, float]:
        """Measure the model on the validation data, if there are any; names begin with ``val_``."""
        if self._val_source is None:
            return {}
        with loop.evaluation("validation") as metrics:
            found = self.validation.run(self._val_source)
            metrics.update({f"{PREFIX}{name}": value for name, value in found.items()})
            loop.state.eval_scores = finite(metrics)
            return dict(metrics)

    def state_dict(self) -> dict[str, Plain]:
        """Return weights, optimizer, gradients that wait, and the place in the data; the tensors are the live ones."""
        return {
            "model": dict(self.model.state_dict()),
            "optimizer": save_optimizer(self.accumulator.optimizer),
            "accumulator": self.accumulator.state_dict(),
            "objective": self.objective.state_dict(),
            "data": {
                "seed": self.data_seed,
                "cursor": self.cursor,
                "fingerprint": None if self._source is None else self._source.fingerprint,
            },
            "loss": self.loss.state_dict(),
            "right": None if self.right is None else self.right.state_dict(),
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on from a saved state."""
        data = saved["data"]
        self.cursor, self.data_seed, self._fingerprint = data["cursor"], data["seed"], data["fingerprint"]
        if self._source is not None:
            self.use(self._source, self._val_source)
        self.model.load_state_dict(saved["model"])
        load_optimizer(self.accumulator.optimizer, saved["optimizer"])
        self.accumulator.load_state_dict(saved["accumulator"])
        self.objective.load_state_dict(saved["objective"])
        self.loss.load_state_dict(saved["loss"])
        if self.right is not None and saved["right"] is not None:
            self.right.load_state_dict(saved["right"])

    def perturb(self, seed: int) -> None:
        """Go on with another order of the data, and other random numbers."""
        self.data_seed = self.source.seed = derive_seed(seed, "data")
        seed_global_random(derive_seed(rank_seed(seed, self.ranks.rank), "global"))

    def _train(self, loop: TrainingLoop) -> bool:
        """Train on the rest of the epoch; False if it was left early."""
        source, accumulator, loss_of, max_steps = self.source, self.accumulator, self.objective.loss, self.max_steps
        add, is_single, full_size = self.loss.add, accumulator.accumulation_steps == 1, self._own_size(0)
        last = -1 if source.batches is None else source.batches - 1
        uneven = -1 if self.ranks.world_size == 1 else last  # learners may have unequal shares of the last batch
        for batch in source.iterate(loop.clocks.epochs, self.cursor):
            index = self.cursor
            loop.minibatch_start(batch)
            divisor = None if is_single and index != uneven else self._divisor(index)
            accumulator.accumulate(loss_of(batch), divisor=divisor, is_last=index == last, loop=loop)
            value: Tensor = accumulator.loss  # type: ignore[assignment]  # of this batch
            add(value, full_size if full_size is not None and index != last else samples_in(batch))
            if self.right is not None:
                self._measure(batch)
            self.cursor = index + 1
            loop.minibatch_end(value)
            is_leaving = index != last and loop.should_leave()  # first: learners agree on stop_update_epoch there, too
            if loop.state.stop_update_epoch or accumulator.steps == max_steps:
                break
            if is_leaving:
                return False
        accumulator.finish(loop)
        if self.cursor == 0:
            raise ConfigError("The training data are empty: they hold no samples.")
        return True

    def _divisor(self, index: int) -> float | None:
        """Return the samples of a batch's window over its own, which makes the window one large batch."""
        source, length = self.source, self.accumulator.accumulation_steps
        size = source.size_of(index)
        if size is None or source.batches is None:
            return None
        first = index - index % length
        window = sum(source.size_of(each) or 0 for each in range(first, min(first + length, source.batches)))
        return window / (self.ranks.world_size * (self._own_size(index) or size))

    def _own_size(self, index: int) -> int | None:
        """Return how many samples of a batch this learner trains on; None if nobody knows."""
        return self.source.size_of(index) if self.ranks.world_size == 1 else self.source.own_size_of(index)  # type: ignore[attr-defined]  # `use` has asked for it

    def _measure(self, batch: Any) -> None:
        assert self.right is not None
        measured = self.validation.measure(batch)
        if measured.right is not None:
            correct, answers = measured.right
            self.right.add(correct.double() / answers.clamp(min=1), float(answers))

    def _metrics(self) -> dict[str, float]:
        right = self.right if self.right is not None else Meter()
        loss, right = (self.loss, right) if self.ranks.world_size == 1 else _joined(self.ranks, self.loss, right)
        found = summary(loss, right, self.objective)
        norm = self.accumulator.norms.mean()
        found["learning_rate"] = self.accumulator.learning_rate
        return found if norm is None else {**found, "grad_norm": norm}


def _require_same_data(saved: Mapping[str, Plain], now: Mapping[str, Plain], *, is_within_epoch: bool) -> None:
    """Refuse data that a run cannot go on with: other content, or another number of batches in mid-epoch."""
    for name in sorted({*saved, *now}):
        if saved.get(name) != now.get(name) and (is_within_epoch or name == "content"):
            raise HookStateError(
                f"The saved run has trained on other data: {name} was {saved.get(name)!r}, now it is "
                f"{now.get(name)!r}. Give it the data and the settings it was saved with."
            )


def _share(source: Source, ranks: Ranks) -> None:
    """Give a learner its share of the batches, where samples have numbers to be shared by."""
    share = getattr(source, "share", None)
    if share is None:
        raise ConfigError(
            f"The data are a {type(source).__name__}, whose order is its own, and cannot be shared by "
            f"{ranks.world_size} learners; give tensors or a dataset with __getitem__ and __len__."
        )
    share(ranks.rank, ranks.world_size)
    if source.batches == 0:
        raise ConfigError(f"The training data hold fewer samples than there are learners ({ranks.world_size}).")


def _joined(ranks: Ranks, *meters: Meter) -> tuple[Meter, ...]:
    """Return the means of all ranks together."""
    told = ranks.gather([meter.sums() for meter in meters])
    return tuple(Meter.of([each[number] for each in told]) for number in range(len(meters)))
