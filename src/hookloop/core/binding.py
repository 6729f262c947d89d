"""Five dialects, one call: every way the seeds write a hook becomes ``handler(ctx)``, once, at registration.

Parameters are resolved by their names, so ``(self, trainer_state)``, ``(self, context)``, ``(self, epoch, metrics)``,
``(self, batch_idx, loss)``, ``(self, trainer)`` and ``()`` all work.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from hookloop.core.clocks import BUILT_IN_CLOCKS
from hookloop.core.context import LIVE_HANDLES, HookContext
from hookloop.core.events import EventTable
from hookloop.core.hook import Hook, TrainerHook
from hookloop.errors import RegistrationError, UnknownNameError

Call = Callable[[HookContext], Any]
HookByName = Callable[[str], object]

_CONTEXT_NAMES = ("ctx", "context", "_", "hook_context")

# What a parameter may be called, and where its value stands.
_PATHS: Mapping[str, str] = {
    "state": "state",
    "trainer_state": "state",
    "clocks": "state.clocks",
    "trainer": "trainer",
    "worker": "worker",
    "model": "model",
    "policy": "model",
    "optimizer": "optimizer",
    "losses": "losses",
    "experience": "experience",
    "batch": "batch",
    "batch_idx": "batch_idx",
    "loss": "loss",
    "metrics": "metrics",
    "evaluation": "evaluation",
    "checkpoint": "checkpoint",
    "outcome": "outcome",
    "exception": "exception",
    "error": "exception",
    "failed_hook": "failed_hook",
    "event": "event",
    "step": "step",
    "rng": "rng",
    "lesson_id": "lesson_id",
    "metadata": "metadata",
    "values": "values",
    "services": "services",
    "epoch": "state.clocks.epochs",
    "agent_step": "state.clocks.env_steps",
    "global_timestep": "state.clocks.env_steps",
    "update_epoch": "state.update_epoch",
    "mb_idx": "state.mb_idx",
    "rollout_stats": "state.rollout_stats",
    "loss_stats": "state.loss_stats",
    "losses_stats": "state.loss_stats",
    "gradient_stats": "state.gradient_stats",
    "eval_scores": "state.eval_scores",
    "curriculum": "state.curriculum",
    "best": "state.best",
    **{clock: f"state.clocks.{clock}" for clock in BUILT_IN_CLOCKS},
}

# Services a run may have or not; a hook that asks for one it has not is given None and stays inactive.
_SERVICE_NAMES = ("wandb_run", "stats_client", "stats_tracker", "timer", "tracker", "display", "logger")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The names a handler may ask for in this set of hooks."""

    clocks: Collection[str]
    values: Collection[str]
    services: Collection[str]
    hook_by_parameter: HookByName

    def getter(self, name: str, owner: str) -> Call:
        """Return the function that finds the value of the parameter ``name`` in a context."""
        if name in _CONTEXT_NAMES:
            return _itself
        if name in _PATHS:
            return attrgetter(_PATHS[name])
        if name in self.clocks:
            return attrgetter(f"state.clocks.{name}")
        if name in self.values:
            return lambda ctx: ctx.value(name)
        if name in self.services or name in _SERVICE_NAMES:
            return lambda ctx: ctx.services.get(name)
        if name.endswith("_hook"):
            return lambda _ctx: self.hook_by_parameter(name)
        known = (*_CONTEXT_NAMES[:2], *_PATHS, *self.clocks, *self.values, *self.services)
        raise UnknownNameError("value to pass for the parameter", name, known, where=f"of {owner}")

    def knows(self, name: str) -> bool:
        """Tell whether a value can be passed for ``name``."""
        known = (*_CONTEXT_NAMES, *_PATHS, *self.clocks, *self.values, *self.services, *_SERVICE_NAMES)
        return name in known or name.endswith("_hook")


@dataclass(frozen=True, slots=True)
class Handler:
    """One method of a hook on one event."""

    event: str
    call: Call
    asks: tuple[str, ...]
    """The parameter names it takes."""
    should_run: Call | None = None


def handlers_of(
    hook: object, on: str, events: EventTable, parameters: Parameters, *, is_chosen: bool = False
) -> dict[str, Handler]:
    """Find every handler of ``hook``; ``on`` is the event of a ``run`` method or a plain function, chosen or not."""
    if isinstance(hook, type):
        raise RegistrationError(f"{hook.__name__} is a class; add an instance of it: {hook.__name__}(...).")
    found = dict(_methods(hook, events, parameters))
    run = _run_of(hook, has_methods=bool(found))
    if run is not None:
        call, asks = bind(run, parameters)
        should_run = getattr(hook, "should_run", None)
        guard = bind(should_run, parameters)[0] if callable(should_run) else None
        if on in found:
            raise RegistrationError(
                f"{_owner(hook)} has both a run method and on_{on}, which is the same event; keep one."
            )
        found[on] = Handler(on, call, asks, guard)
    elif is_chosen:
        raise RegistrationError(
            f"{_owner(hook)!r} is told to run on {on!r}, but has no run method and is no function; "
            f"it handles {', '.join(found) or 'no event'}: drop 'on', or write on_{on}(self, ctx)."
        )
    if isinstance(hook, str):
        raise RegistrationError(f"{hook!r} is a text; to add a hook by name, use add_config([{{'use': {hook!r}}}]).")
    if not found:
        raise RegistrationError(
            f"{_owner(hook)} handles no event: give it a method such as on_epoch_end(self, ctx), or run(self, ctx)."
        )
    return found


def bind(function: Callable[..., Any], parameters: Parameters) -> tuple[Call, tuple[str, ...]]:
    """Return ``function`` as a function of the context alone, and the names of what it takes."""
    owner = getattr(function, "__qualname__", repr(function))
    if inspect.iscoroutinefunction(function):
        raise RegistrationError(
            f"{owner} is a coroutine, which nobody would await; write a plain function and add it with background=True."
        )
    positional: list[str] = []
    keywords: list[str] = []
    for parameter in _signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is not parameter.empty and not parameters.knows(parameter.name):
            continue
        is_keyword = parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty
        (keywords if is_keyword else positional).append(parameter.name)
    getters = [parameters.getter(name, owner) for name in positional]
    named = {name: parameters.getter(name, owner) for name in keywords}
    return _adapt(function, getters, named), (*positional, *keywords)


def live_handles(asks: Collection[str]) -> list[str]:
    """Return the live objects among the names a handler asks for."""
    aliases = {"policy": "model"}
    return [name for name in asks if aliases.get(name, name) in LIVE_HANDLES]


def parameter_name(class_name: str) -> str:
    """Return the parameter under which another hook may ask for a hook of this class: ``checkpoint_hook``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()


def _itself(ctx: HookContext) -> HookContext:
    return ctx


def _adapt(function: Callable[..., Any], getters: list[Call], named: dict[str, Call]) -> Call:
    if named:
        return lambda ctx: function(*[get(ctx) for get in getters], **{name: get(ctx) for name, get in named.items()})
    if getters == [_itself]:
        return function
    if not getters:
        return lambda _ctx: function()
    if len(getters) == 1:
        first = getters[0]
        return lambda ctx: function(first(ctx))
    return lambda ctx: function(*[get(ctx) for get in getters])


def _methods(hook: object, events: EventTable, parameters: Parameters) -> dict[str, Handler]:
    found: dict[str, Handler] = {}
    spelled: dict[str, str] = {}
    for attribute in dir(hook):
        if not attribute.startswith("on_"):
            continue
        method = getattr(hook, attribute)
        if not callable(method) or _is_inherited_no_op(hook, attribute):
            continue
        if attribute == "on_error":
            raise RegistrationError(
                f"{_owner(hook)} has a method on_error, which names the failure policy (raise, warn, disable). "
                "For an event write on_exception (the run failed) or on_hook_error (a hook did)."
            )
        event = events.find(attribute.removeprefix("on_"), where=f"for {_owner(hook)}.{attribute}")
        if event.name in found:
            raise RegistrationError(
                f"{_owner(hook)} handles {event.name!r} twice, as {spelled[event.name]} and as {attribute}; keep one."
            )
        call, asks = bind(method, parameters)
        found[event.name] = Handler(event.name, call, asks)
        spelled[event.name] = attribute
    return {name: found[name] for name in events.names if name in found}


def _is_inherited_no_op(hook: object, attribute: str) -> bool:
    own = getattr(type(hook), attribute, None)
    return own is not None and own is getattr(TrainerHook, attribute, None)


def _run_of(hook: object, *, has_methods: bool) -> Callable[..., Any] | None:
    if inspect.isroutine(hook):
        return hook
    run = getattr(hook, "run", None)
    if isinstance(hook, Hook):
        is_pair = type(hook).run is not Hook.run or type(hook).should_run is not Hook.should_run
        return run if is_pair or "run" in vars(hook) else None
    if callable(run) and (callable(getattr(hook, "should_run", None)) or not has_methods):
        return run
    if not has_methods and callable(hook) and not isinstance(hook, type):
        return hook
    return None


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise RegistrationError(
            f"The parameters of {function!r} cannot be read; wrap it in a function that takes ctx."
        ) from error


def _owner(hook: object) -> str:
    return getattr(hook, "__name__", type(hook).__name__)
