"""What is refused at registration: in one sentence that names the thing, the value, the rule and the way out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from hookloop.core import (
    At,
    CompositeHook,
    Cycle,
    Every,
    Hook,
    HookContext,
    HookManager,
    Once,
    PeriodicHook,
    TrainerHook,
    TrainerState,
    When,
    Window,
)
from hookloop.errors import (
    HookloopError,
    HookResultError,
    NameClashError,
    RegistrationError,
    ScheduleError,
    UnknownNameError,
)
from hookloop.testing import Harness


class Watcher:
    def on_epoch_end(self, ctx: HookContext) -> None: ...


def refusal(act: Callable[[], object], kind: type[Exception] = RegistrationError) -> str:
    with pytest.raises(kind) as caught:
        act()
    assert isinstance(caught.value, HookloopError)
    return str(caught.value)


def refusal_of(hook: object, kind: type[Exception] = RegistrationError, **options: object) -> str:
    """Return the words with which a hook is refused, having seen that nothing of it stays behind."""
    hooks = HookManager()
    words = refusal(lambda: hooks.add(hook, **options), kind)
    assert len(hooks) == 0
    assert hooks.order() == []
    return words


def assert_says(message: str, *words: str) -> None:
    missing = [word for word in words if word not in message]
    assert not missing, f"{message!r} does not say {missing}"


# Misspelt names


def test_a_misspelt_event_method_is_told_with_the_nearest_event() -> None:
    class Misspelt:
        def on_epoch_ennd(self, ctx: HookContext) -> None: ...

    message = refusal_of(Misspelt(), UnknownNameError)

    assert_says(message, "'epoch_ennd'", "Misspelt.on_epoch_ennd", "Did you mean 'epoch_end'?")


def test_an_event_that_resembles_no_other_is_told_with_all_there_are() -> None:
    class Inventive:
        def on_xyz(self, ctx: HookContext) -> None: ...

    assert_says(refusal_of(Inventive()), "'xyz'", "Known: ", "epoch_end", "training_start")


def test_a_misspelt_event_in_on_is_told_with_the_nearest_event() -> None:
    message = refusal_of(lambda ctx: None, UnknownNameError, name="probe", on="epoch_ends")

    assert_says(message, "'epoch_ends'", "'probe'", "Did you mean 'epoch_end'?")


@pytest.mark.parametrize(
    ("misspelt", "suggestion"),
    [("shedule", "schedule"), ("prioriy", "priority"), ("on_eror", "on_error"), ("need", "needs")],
)
def test_a_misspelt_option_is_told_with_the_nearest_option(misspelt: str, suggestion: str) -> None:
    message = refusal_of(Watcher(), UnknownNameError, **{misspelt: 1})

    assert_says(message, repr(misspelt), "hook option", f"Did you mean {suggestion!r}?")


def test_a_misspelt_option_on_a_class_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    class Hasty(Watcher):
        shedule = "every 5 epochs"

    HookManager().add(Hasty())

    assert "'Hasty' declares 'shedule', which is no hook option; did you mean 'schedule'?" in caplog.text


def test_a_misspelt_parameter_is_told_with_the_nearest_value() -> None:
    class Misspelt:
        def on_epoch_end(self, trainr_state: TrainerState) -> None: ...

    message = refusal_of(Misspelt(), UnknownNameError)

    assert_says(message, "'trainr_state'", "Misspelt.on_epoch_end", "Did you mean 'trainer_state'?")


def test_a_misspelt_event_in_a_mapping_of_schedules_is_told_with_the_nearest_event() -> None:
    message = refusal_of(Watcher(), UnknownNameError, schedule={"epoch_ennd": "every 5 epochs"})

    assert_says(message, "'epoch_ennd'", "schedules of 'Watcher'", "Did you mean 'epoch_end'?")


def test_a_misspelt_default_event_of_a_manager_is_told_with_the_nearest_event() -> None:
    message = refusal(lambda: HookManager(default_event="stepp_end"), UnknownNameError)

    assert_says(message, "'stepp_end'", "Did you mean 'step_end'?")


# Schedules


def test_a_misspelt_schedule_text_is_refused_where_it_is_given() -> None:
    message = refusal_of(Watcher(), ScheduleError, schedule="evry 5 epochs")

    assert_says(message, "'evry 5 epochs'", "'evry'", "Did you mean 'every'?")


def test_a_misspelt_clock_in_a_text_is_told_with_the_nearest_clock() -> None:
    message = refusal_of(Watcher(), ScheduleError, schedule="every 5 epocs")

    assert_says(message, "'every 5 epocs'", "'epocs'", "Did you mean 'epochs'?")


@pytest.mark.parametrize(
    "schedule",
    [
        Every(5, "epocs"),
        At(5, "epocs"),
        Window(5, 9, "epocs"),
        Cycle(4, [1], "epocs"),
        Every(5, "seconds") & ~Once(3, "epocs"),
    ],
    ids=str,
)
def test_a_misspelt_clock_in_a_value_is_told_with_the_nearest_clock(schedule: object) -> None:
    message = refusal_of(Watcher(), HookloopError, schedule=schedule)

    assert_says(message, "'epocs'", "Did you mean 'epochs'?")


def test_a_clock_may_be_called_in_a_value_what_it_may_be_called_in_a_text() -> None:
    harness = Harness()
    called: list[int] = []
    harness.hooks.add(lambda epoch: called.append(epoch), name="probe", on="epoch_end", schedule=Every(2, "epoch"))

    for _ in range(4):
        harness.epoch()

    assert called == [2, 4]


@pytest.mark.parametrize("schedule", [0, -3, "every 0 epochs", "every 0.0 seconds"])
def test_an_interval_that_is_not_positive_is_refused(schedule: object) -> None:
    assert_says(refusal_of(Watcher(), ScheduleError, schedule=schedule), "must be above 0", "leave the schedule out")


@pytest.mark.parametrize(
    "schedule", ["evry 5 epochs", "every 0 epochs", 0, [5], {"epoch_end": "every 5 epocs"}], ids=str
)
def test_a_refused_schedule_is_told_whose_it_is(schedule: object) -> None:
    assert_says(refusal_of(Watcher(), ScheduleError, name="probe", schedule=schedule), "'probe'")


def test_an_endless_interval_is_refused_by_its_own_words() -> None:
    message = refusal(lambda: Every(math.inf), ScheduleError)

    assert_says(message, "inf", "finite")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Every(0), ["above 0", "every 0", "leave the schedule out"]),
        (lambda: Every(-2), ["above 0", "every -2"]),
        (lambda: Every(True), ["'every'", "a number", "True"]),
        (lambda: Every("5"), ["'every'", "a number", "'5'"]),
        (lambda: Every(math.nan), ["'every'", "a number", "nan"]),
        (lambda: Every(5, start="10"), ["'from'", "a number", "'10'"]),
        (lambda: Every(5, end=math.nan), ["'until'", "a number", "nan"]),
        (lambda: Every(5, start=10, end=10), ["from 10 until 10", "empty", "from < until"]),
        (lambda: At([]), ["at least one tick", "Never()"]),
        (lambda: At([5, -1]), ["0 or above", "-1"]),
        (lambda: At(["5"]), ["'at'", "a number", "'5'"]),
        (lambda: Once([1, 2]), ["one tick", "[1, 2]", "write At"]),
        (lambda: Window(5, 5), ["Window(5, 5)", "empty", "begin < end"]),
        (lambda: Window(-1, 5), ["Window(-1, 5)", "0 <= begin"]),
        (lambda: Window("5"), ["'from'", "a number", "'5'"]),
        (lambda: Cycle(4, []), ["Cycle(4, active=())", "never be due", "from 1 to 4"]),
        (lambda: Cycle(4, [0]), ["position", "0", "from 1"]),
        (lambda: Cycle(4, [5]), ["Position 5", "cycle of 4", "from 1 to 4"]),
        (lambda: Cycle(4, [1.5]), ["whole number", "1.5"]),
        (lambda: Cycle(4, ["1"]), ["number", "'1'"]),
        (lambda: Cycle(4, 3), ["positions", "3"]),
        (lambda: Cycle(0, [1]), ["length", "at least 1", "got 0"]),
        (lambda: Cycle(2.5, [1]), ["length", "whole number", "2.5"]),
        (lambda: Cycle("4", [1]), ["'4'"]),
        (lambda: When("late"), ["a function", "'late'"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_schedule_that_means_nothing_cannot_be_built(build: Callable[[], object], words: list[str]) -> None:
    assert_says(refusal(build, ScheduleError), *words)


@pytest.mark.parametrize("schedule", [True, [5], object(), b"every 5 epochs"])
def test_what_is_no_schedule_at_all_is_told_what_one_looks_like(schedule: object) -> None:
    assert_says(
        refusal_of(Watcher(), ScheduleError, schedule=schedule), repr(schedule), "no schedule", "'every 50 epochs'"
    )


def test_a_mapping_of_schedules_is_by_event_name() -> None:
    assert_says(refusal_of(Watcher(), HookloopError, schedule={5: "every 5 epochs"}), "5", "event", "'Watcher'")


def test_a_schedule_is_refused_where_it_could_have_no_effect() -> None:
    class Farewell:
        def on_training_end(self) -> None: ...

    message = refusal_of(Farewell(), schedule="every 5 epochs")

    assert_says(message, "'Farewell'", "'every 5 epochs'", "only handles training_end", "drop the schedule")


def test_a_schedule_for_a_turning_point_of_the_run_is_refused() -> None:
    class Both(Watcher):
        def on_training_end(self) -> None: ...

    message = refusal_of(Both(), schedule={"training_end": "every 5 epochs"})

    assert_says(message, "'Both'", "'training_end'", "drop it")


def test_a_schedule_for_an_event_the_hook_does_not_handle_is_refused() -> None:
    message = refusal_of(Watcher(), schedule={"step_end": "every 5 env_steps"})

    assert_says(message, "'Watcher'", "'step_end'", "no method on_step_end", "it handles epoch_end")


@pytest.mark.parametrize("frequency", [0, -1, True, "ten", None])
def test_a_periodic_hook_needs_a_whole_number_of_steps(frequency: Any) -> None:
    message = refusal(lambda: PeriodicHook(frequency))

    assert_says(message, "PeriodicHook", "frequency", "at least 1", str(frequency))


def test_a_periodic_hook_starts_at_a_number() -> None:
    assert_says(refusal(lambda: PeriodicHook(5, start_step="later")), "PeriodicHook", "start_step", "'later'")  # type: ignore[arg-type]


# What is no hook


def test_the_name_of_a_hook_is_told_from_a_hook() -> None:
    with pytest.raises(RegistrationError, match=r"'logging' is a text.*add_config"):
        HookManager().add("logging")


@pytest.mark.parametrize("thing", [object(), 5, None, Hook(), TrainerHook()], ids=lambda thing: type(thing).__name__)
def test_what_handles_no_event_is_told_how_to(thing: object) -> None:
    message = refusal_of(thing)

    assert_says(message, type(thing).__name__, "handles no event", "on_epoch_end(self, ctx)", "run(self, ctx)")


class Empty:
    pass


class Runner(Hook):
    def run(self, context: HookContext) -> None: ...


@pytest.mark.parametrize("hook_class", [Watcher, Runner, PeriodicHook, Empty])
def test_a_class_is_told_from_an_instance(hook_class: type) -> None:
    assert_says(refusal_of(hook_class), f"{hook_class.__name__} is a class", f"{hook_class.__name__}(...)")


def test_a_coroutine_method_is_told_of_background_hooks() -> None:
    class Async:
        async def on_epoch_end(self, ctx: HookContext) -> None: ...

    assert_says(refusal_of(Async()), "Async.on_epoch_end", "coroutine", "background=True")


def test_a_coroutine_function_is_told_of_background_hooks() -> None:
    async def publish(ctx: HookContext) -> None: ...

    assert_says(refusal_of(publish), "publish", "coroutine", "background=True")


def test_a_method_on_error_is_told_from_the_failure_policy() -> None:
    class Confused(Watcher):
        def on_error(self, ctx: HookContext) -> None: ...

    message = refusal_of(Confused())

    assert_says(message, "Confused", "on_error", "failure policy", "on_exception", "on_hook_error")


def test_two_names_of_one_event_on_one_hook_are_refused() -> None:
    class Doubled:
        def on_step(self, ctx: HookContext) -> None: ...

        def on_env_step(self, ctx: HookContext) -> None: ...

    assert_says(refusal_of(Doubled()), "Doubled", "'step_end' twice", "on_env_step", "on_step", "keep one")


def test_a_run_method_beside_a_method_for_the_same_event_is_refused() -> None:
    class Doubled(Runner):
        def on_step_end(self, ctx: HookContext) -> None: ...

    assert_says(refusal_of(Doubled()), "Doubled", "run", "on_step_end", "keep one")


def test_an_empty_group_is_refused() -> None:
    assert_says(refusal(lambda: CompositeHook([])), "CompositeHook", "at least one hook")


def test_one_bad_child_refuses_the_whole_group() -> None:
    good = Watcher()

    refusal_of(CompositeHook([good, Empty()]))

    assert HookManager().add(good) == "Watcher"


@pytest.mark.parametrize("options", [{"schedule": "every 5 epochs"}, {"priority": 5}, {"ranks": "all"}], ids=str)
def test_an_option_that_a_group_cannot_have_is_refused(options: dict[str, Any]) -> None:
    message = refusal_of(CompositeHook([Watcher()], name="group"), **options)

    assert_says(message, "group", repr(next(iter(options))), "its hooks")


def test_an_event_to_run_on_is_refused_where_there_is_no_run_method() -> None:
    assert_says(refusal_of(Watcher(), on="step_end"), "Watcher", "'step_end'", "no run method", "it handles epoch_end")


# Names and owners


def test_a_chosen_name_must_be_free() -> None:
    hooks = HookManager()
    hooks.add(Watcher(), name="metrics")

    message = refusal(lambda: hooks.add(Watcher(), name="metrics"), NameClashError)

    assert_says(message, "'metrics'", "already", "saved under its name", "name='...'")
    assert len(hooks) == 1


def test_hooks_that_chose_no_name_are_numbered() -> None:
    hooks = HookManager()

    assert [hooks.add(Watcher()) for _ in range(3)] == ["Watcher", "Watcher_2", "Watcher_3"]


def test_a_hook_cannot_be_registered_twice() -> None:
    hooks, hook = HookManager(), Watcher()
    hooks.add(hook)

    message = refusal(lambda: hooks.add(hook))

    assert_says(message, "Watcher", "this run already", "second instance")
    assert len(hooks) == 1


def test_a_hook_of_another_run_cannot_be_registered_until_that_run_is_closed() -> None:
    first, second, hook = Harness(), Harness(), Watcher()
    first.hooks.add(hook)

    message = refusal(lambda: second.hooks.add(hook))
    first.end()

    assert_says(message, "Watcher", "another run already", "second instance", "close that run")
    assert second.hooks.add(hook) == "Watcher"


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 129, "naïve", 5])
def test_a_name_is_plain_text_since_state_is_saved_under_it(name: object) -> None:
    assert_says(refusal_of(Watcher(), name=name), "name must be 1 to 128 letters", repr(name), "saved under it")


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": "fast"}, ["budget", "'2%', '5ms' or '1.5s'", "'fast'"]),
        ({"budget": "0%"}, ["budget", "'0%'"]),
        ({"budget": 5}, ["budget", "'5ms'", "got 5"]),
        ({"priority": "high"}, ["'priority'", "a number", "higher runs earlier", "'high'"]),
        ({"priority": True}, ["'priority'", "True"]),
        ({"priority": math.nan}, ["'priority'", "nan"]),
        ({"ranks": "mian"}, ["'ranks'", "'main' or 'all'", "'mian'", "Did you mean 'main'?"]),
        ({"ranks": 0}, ["'ranks'", "'main' or 'all'", "got 0"]),
        ({"on_error": "wran"}, ["'on_error'", "'raise'", "'disable'", "'wran'", "Did you mean 'warn'?"]),
        ({"stage": "chekpoint"}, ["'stage'", "'evaluate'", "'chekpoint'", "Did you mean 'checkpoint'?"]),
        ({"stage": 2}, ["'stage'", "got 2"]),
        ({"background": 1}, ["'background'", "True or False", "got 1"]),
        ({"enabled": "yes"}, ["'enabled'", "True or False", "'yes'"]),
        ({"needs": 5}, ["'needs'", "a name or a list of names", "got 5"]),
        ({"provides": [5]}, ["'provides'", "names", "got 5"]),
        ({"after": [""]}, ["'after'", "names", "''"]),
        ({"on": 5}, ["'on'", "a text", "got 5"]),
    ],
    ids=str,
)
def test_an_option_with_a_wrong_value_is_told_hook_value_and_rule(options: dict[str, Any], words: list[str]) -> None:
    assert_says(refusal_of(Watcher(), name="probe", **options), "'probe'", *words)


def test_what_a_class_declares_is_checked_like_what_is_given() -> None:
    class Hasty(Watcher):
        ranks = "everyone"

    assert_says(refusal_of(Hasty()), "'ranks'", "'Hasty'", "'everyone'")


def test_a_managers_own_policy_is_checked_too() -> None:
    assert_says(refusal(lambda: HookManager(on_error="wran")), "on_error", "'warn'", "'wran'")


@pytest.mark.parametrize(
    ("look", "handle"),
    [
        (lambda model: None, "model"),
        (lambda policy: None, "policy"),
        (lambda optimizer: None, "optimizer"),
        (lambda batch: None, "batch"),
        (lambda trainer: None, "trainer"),
    ],
)
def test_a_background_hook_is_given_live_objects_as_copies_only(look: Callable[..., None], handle: str) -> None:
    message = refusal_of(look, name="probe", on="epoch_end", background=True)

    assert_says(message, "'probe'", "background", f"'{handle}'", f"needs=({handle!r},)", "copy")
    assert HookManager().add(look, name="probe", on="epoch_end", background=True, needs=(handle,)) == "probe"


# Results


@pytest.mark.parametrize("result", [3, 0.5, True, "loss", [1], ()])
def test_a_result_that_is_no_mapping_is_refused_at_the_first_call(result: object) -> None:
    harness = Harness()
    harness.hooks.add(lambda: result, name="probe", on="epoch_end")

    message = refusal(harness.epoch, HookResultError)

    assert_says(message, "'probe'", type(result).__name__, "epoch_end", "a mapping of metrics, or nothing")
