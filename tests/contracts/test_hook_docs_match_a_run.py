"""The picture of the loop in the docstring is what a run does."""

from __future__ import annotations

import re

from hookloop.core import BUILT_IN_EVENTS, TrainerHook, TrainingLoop
from hookloop.core import hook as hook_module
from hookloop.core.emitters import Emitters
from hookloop.testing import ToyWorkload, TraceHook


def test_the_picture_in_the_docstring_has_the_order_of_a_recorded_run() -> None:
    trace = TraceHook()
    TrainingLoop(ToyWorkload(1), [trace]).run()
    recorded = list(dict.fromkeys(trace.events))
    picture = (hook_module.__doc__ or "").partition("::")[2]
    names = {event.name for event in BUILT_IN_EVENTS}

    pictured = [word for word in re.findall(r"\w+", picture) if word in names]

    assert [name for name in pictured if name in recorded] == recorded


def test_trainer_hook_has_a_method_for_every_event_and_no_other() -> None:
    methods = {name.removeprefix("on_") for name in vars(TrainerHook) if name.startswith("on_")}

    assert methods == {event.name for event in BUILT_IN_EVENTS}


def test_there_is_a_typed_emitter_for_every_event() -> None:
    assert set(Emitters.__annotations__) == {event.name for event in BUILT_IN_EVENTS}
