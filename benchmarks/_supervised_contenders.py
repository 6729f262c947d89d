"""One process of a race of supervised trainers: ``python _supervised_contenders.py CONTENDER WORK CORE``.

It trains for ever and stops between two steps whenever a turn is over, see ``Paced``. Each contender is set up the way
its documentation says is the quickest, and leaves out what it can leave out: logging, bars, summaries, checkpoints.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from _supervised_work import ENDLESS, WORKS, Feed, FeedSource, Paced, Work
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

Batches = Iterable[tuple[Tensor, Tensor]]


def loader(work: Work) -> Batches:
    """Return the batches of a work: ready for the small models, by torch's DataLoader where loading is part of it."""
    if work.name != "784-256-10":
        return Feed(work)
    return DataLoader(TensorDataset(*work.make_data()), batch_size=work.batch_size, shuffle=True)


def bare(model: Paced, work: Work, *, clip: float | None = None, by_hand: bool = False) -> None:
    clip = clip if clip is not None else work.clip
    optimizer, batches = work.make_optimizer(model.parameters()), loader(work)
    parameters = list(model.parameters())
    while True:
        for inputs, targets in batches:
            loss = model.judge(model(inputs), targets)
            loss.backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(parameters, clip)
            optimizer.step()
            if by_hand:
                for parameter in parameters:
                    parameter.grad = None
            else:
                optimizer.zero_grad()


def bare_slices(model: Paced, work: Work) -> None:
    from hookloop.core import derive_seed
    from hookloop.supervised.data import order_of

    optimizer, (inputs, targets) = work.make_optimizer(model.parameters()), work.make_data()
    for epoch in range(ENDLESS):
        order = order_of(len(inputs), seed=derive_seed(42, "data"), epoch=epoch, shuffle=True)
        for index in order.split(work.batch_size):
            model.judge(model(inputs[index]), targets[index]).backward()
            optimizer.step()
            optimizer.zero_grad()


def hookloop(model: Paced, work: Work, *, is_watched: bool, clip: float | None = None) -> None:
    from hookloop.supervised import Trainer, TrainingConfig

    config = TrainingConfig(
        epochs=ENDLESS,
        batch_size=work.batch_size,
        learning_rate=work.learning_rate,
        max_grad_norm=clip if clip is not None else work.clip,
        halt_after_bad_gradients=3 if is_watched else 0,
    )
    # The same optimizer as the others where the step itself is small; its own, by the settings, where a user would.
    optimizer = work.make_optimizer if work.name == "near-empty" else None
    trainer = Trainer(model, training_config=config, loss=model.judge, optimizer=optimizer)
    trainer.train(work.make_data() if work.name == "784-256-10" else FeedSource(work))


def lightning(model: Paced, work: Work) -> None:
    from lightning.pytorch import LightningModule, Trainer

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            return model.judge(model(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return work.make_optimizer(self.parameters())

    trainer = Trainer(barebones=True, accelerator="cpu", devices=1, max_epochs=-1, gradient_clip_val=work.clip)
    trainer.fit(Module(), loader(work))


def transformers(model: Paced, work: Work) -> None:
    from transformers import Trainer, TrainingArguments

    class OurTrainer(Trainer):
        def get_train_dataloader(self) -> Any:
            return loader(work)

        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
            return paced.judge(model(inputs[0]), inputs[1])

    paced = model
    arguments = TrainingArguments(
        output_dir=tempfile.gettempdir(), use_cpu=True, max_steps=ENDLESS, max_grad_norm=work.clip or 0.0,
        lr_scheduler_type="constant", report_to="none", disable_tqdm=True, logging_strategy="no", save_strategy="no",
        logging_nan_inf_filter=False, remove_unused_columns=False,
    )  # fmt: skip
    optimizer: Any = work.make_optimizer(model.parameters())
    OurTrainer(model=model, args=arguments, optimizers=(optimizer, None)).train()


def accelerate(model: Paced, work: Work) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    ready, optimizer = accelerator.prepare(model, work.make_optimizer(model.parameters()))
    batches: Any = loader(work)
    if isinstance(batches, DataLoader):
        batches = accelerator.prepare(batches)
    while True:
        for inputs, targets in batches:
            accelerator.backward(model.judge(ready(inputs), targets))
            if work.clip is not None:
                accelerator.clip_grad_norm_(ready.parameters(), work.clip)
            optimizer.step()
            optimizer.zero_grad()


def ignite(model: Paced, work: Work) -> None:
    from ignite.engine import Engine

    optimizer = work.make_optimizer(model.parameters())

    def step(engine: Engine, batch: Any) -> Tensor:
        optimizer.zero_grad()
        loss = model.judge(model(batch[0]), batch[1])
        loss.backward()
        if work.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), work.clip)
        optimizer.step()
        return loss.detach()

    Engine(step).run(loader(work), max_epochs=ENDLESS)


CONTENDERS: dict[str, Callable[[Paced, Work], None]] = {
    "bare": bare,
    "bare-clipped": partial(bare, clip=1.0),
    "bare-by-hand": partial(bare, by_hand=True),
    "bare-slices": bare_slices,
    "hookloop": partial(hookloop, is_watched=False),
    "hookloop-watched": partial(hookloop, is_watched=True),
    "hookloop-clipped": partial(hookloop, is_watched=True, clip=1.0),
    "lightning": lightning,
    "transformers": transformers,
    "accelerate": accelerate,
    "ignite": ignite,
}


def main(contender: str, work_name: str, core: str) -> None:
    os.sched_setaffinity(0, {int(core)})
    torch.set_num_threads(1)
    work = WORKS[work_name]
    CONTENDERS[contender](Paced(work.make_net(), work.steps), work)


if __name__ == "__main__":
    main(*sys.argv[1:])
