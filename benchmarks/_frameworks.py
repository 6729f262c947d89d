"""The frameworks that benchmarks/dispatch.py compares: each loaded with hooks, ready to fire one event."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any, Literal

from _measure import Spin, is_importable

SCHEDULE_INTERVAL = 1_000_000
OURS, IGNITE_LOOP = "hookloop", "ignite (private, as its loop)"


@dataclass(frozen=True, slots=True)
class Load:
    """How many hooks are registered, and what they have to do with the event that is fired."""

    label: str
    kind: Literal["active", "other", "scheduled"]
    hooks: int

    def pick(self, *, active: Any, other: Any, scheduled: Any) -> Any:
        """Return the argument named after this load's kind."""
        return {"active": active, "other": other, "scheduled": scheduled}[self.kind]


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """A framework loaded with hooks: how to fire its event, what its hooks run, how to set its clock."""

    spin: Spin
    body: CodeType
    set_clock: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Framework:
    """A contender by name, with the module that must be importable and the builder of its dispatcher."""

    name: str
    package: str
    module: str
    build: Callable[[Load], Dispatcher]

    @property
    def is_installed(self) -> bool:
        return is_importable(self.module)


class StepEndHook:
    def on_step_end(self, ctx: object) -> None: ...


class EpochEndHook:
    def on_epoch_end(self, ctx: object) -> None: ...


class Progress:
    """The clock of frameworks whose events carry the step as an argument."""

    __slots__ = ("updates",)

    def __init__(self) -> None:
        self.updates = 1

    def set(self, updates: int) -> None:
        self.updates = updates


def load_hookloop(load: Load) -> tuple[Any, Any]:
    """Return our dispatcher with its hooks registered, and the context its events take."""
    from hookloop.core import Every, HookContext, HookManager

    hooks = HookManager()
    options = {"schedule": Every(SCHEDULE_INTERVAL, "env_steps")} if load.kind == "scheduled" else {}
    for index in range(load.hooks):
        hook = EpochEndHook() if load.kind == "other" else StepEndHook()
        hooks.add(hook, name=f"h{index}", **options)
    return hooks, HookContext()


def build_hookloop(load: Load) -> Dispatcher:
    hooks, ctx = load_hookloop(load)

    def spin(calls: int) -> None:
        for _ in range(calls):
            hooks.emit.step_end(ctx)

    def set_clock(env_steps: int) -> None:
        ctx.state.clocks.env_steps = env_steps

    body = EpochEndHook.on_epoch_end if load.kind == "other" else StepEndHook.on_step_end
    return Dispatcher(spin, body.__code__, set_clock)


def build_lightning(load: Load) -> Dispatcher:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.trainer.call import _call_callback_hooks

    class Active(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx): ...

    class Other(Callback):
        def on_train_epoch_end(self, trainer, pl_module): ...

    class Scheduled(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            if batch_idx % SCHEDULE_INTERVAL == 0:
                self.act()

        def act(self): ...

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)  # a Trainer greets whenever one is built
    callback = load.pick(active=Active, other=Other, scheduled=Scheduled)
    services = ("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing")
    callbacks = [callback() for _ in range(load.hooks)]
    trainer = Trainer(accelerator="cpu", devices=1, callbacks=callbacks, **dict.fromkeys(services, False))
    trainer.strategy.connect(LightningModule())
    progress = Progress()

    def spin(calls: int) -> None:
        for _ in range(calls):
            _call_callback_hooks(trainer, "on_train_batch_end", None, None, progress.updates)

    body = load.pick(active=Active.on_train_batch_end, other=Other.on_train_epoch_end, scheduled=Scheduled.act)
    return Dispatcher(spin, body.__code__, progress.set)


def build_transformers(load: Load) -> Dispatcher:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer_callback import CallbackHandler
    from transformers.utils.logging import set_verbosity_error

    class Active(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs): ...

    class Other(TrainerCallback):
        def on_epoch_end(self, args, state, control, **kwargs): ...

    class Scheduled(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step % SCHEDULE_INTERVAL == 0:
                self.act()

        def act(self): ...

    set_verbosity_error()  # each second callback of one class is a warning
    callback = load.pick(active=Active, other=Other, scheduled=Scheduled)
    callbacks = CallbackHandler([callback() for _ in range(load.hooks)], None, None, None, None)
    args = TrainingArguments(output_dir=tempfile.gettempdir(), report_to="none", use_cpu=True)
    state, control = TrainerState(), TrainerControl()

    def spin(calls: int) -> None:
        for _ in range(calls):
            callbacks.on_step_end(args, state, control)

    def set_clock(global_step: int) -> None:
        state.global_step = global_step

    body = load.pick(active=Active.on_step_end, other=Other.on_epoch_end, scheduled=Scheduled.act)
    return Dispatcher(spin, body.__code__, set_clock)


def build_ignite(load: Load, *, is_public: bool) -> Dispatcher:
    from ignite.engine import Engine, Events

    class Plugin:
        def on_event(self, engine): ...

    engine = Engine(lambda engine, batch: None)
    for _ in range(load.hooks):
        event = load.pick(
            active=Events.ITERATION_COMPLETED,
            other=Events.EPOCH_COMPLETED,
            scheduled=Events.ITERATION_COMPLETED(every=SCHEDULE_INTERVAL),
        )
        engine.add_event_handler(event, Plugin().on_event)

    def spin_public(calls: int) -> None:
        for _ in range(calls):
            engine.fire_event(Events.ITERATION_COMPLETED)

    def spin_private(calls: int) -> None:
        for _ in range(calls):
            engine._fire_event(Events.ITERATION_COMPLETED)

    def set_clock(iteration: int) -> None:
        engine.state.iteration = iteration

    return Dispatcher(spin_public if is_public else spin_private, Plugin.on_event.__code__, set_clock)


def build_stable_baselines3(load: Load) -> Dispatcher:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EveryNTimesteps

    class Active(BaseCallback):
        def _on_step(self) -> bool:
            return True

    class Other(BaseCallback):
        def _on_step(self) -> bool:  # abstract in the base class: every callback has one
            return True

        def _on_rollout_end(self) -> None: ...

    def scheduled() -> BaseCallback:
        return EveryNTimesteps(SCHEDULE_INTERVAL, Active())

    callback = load.pick(active=Active, other=Other, scheduled=scheduled)
    model = PPO("MlpPolicy", "CartPole-v1", device="cpu", n_steps=64)
    callbacks = CallbackList([callback() for _ in range(load.hooks)])
    callbacks.init_callback(model)
    callbacks.on_training_start({}, {})

    def spin(calls: int) -> None:
        for _ in range(calls):
            callbacks.on_step()

    def set_clock(num_timesteps: int) -> None:
        model.num_timesteps = num_timesteps

    body = load.pick(active=Active._on_step, other=Other._on_rollout_end, scheduled=Active._on_step)
    return Dispatcher(spin, body.__code__, set_clock)


def build_pluggy(load: Load) -> Dispatcher:
    import pluggy

    spec, impl = pluggy.HookspecMarker("bench"), pluggy.HookimplMarker("bench")

    class Specs:
        @spec
        def on_step_end(self, ctx): ...

    class Active:
        @impl
        def on_step_end(self, ctx): ...

    class Other:
        @impl
        def on_epoch_end(self, ctx): ...

    class Scheduled:
        @impl
        def on_step_end(self, ctx):
            if ctx.updates % SCHEDULE_INTERVAL == 0:
                self.act()

        def act(self): ...

    plugins = pluggy.PluginManager("bench")
    plugins.add_hookspecs(Specs)
    for _ in range(load.hooks):
        plugins.register(load.pick(active=Active, other=Other, scheduled=Scheduled)())
    ctx = Progress()

    def spin(calls: int) -> None:
        for _ in range(calls):
            plugins.hook.on_step_end(ctx=ctx)

    body = load.pick(active=Active.on_step_end, other=Other.on_epoch_end, scheduled=Scheduled.act)
    return Dispatcher(spin, body.__code__, ctx.set)


FRAMEWORKS = (
    Framework(OURS, "hookloop", "hookloop.core", build_hookloop),
    Framework("lightning", "lightning", "lightning.pytorch", build_lightning),
    Framework("transformers", "transformers", "transformers", build_transformers),
    Framework("ignite", "pytorch-ignite", "ignite", partial(build_ignite, is_public=True)),
    Framework(IGNITE_LOOP, "pytorch-ignite", "ignite", partial(build_ignite, is_public=False)),
    Framework("stable-baselines3", "stable-baselines3", "stable_baselines3", build_stable_baselines3),
    Framework("pluggy", "pluggy", "pluggy", build_pluggy),
)
