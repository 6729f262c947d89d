"""The order of hooks: declared relations first, then stage, priority and registration, the same everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.core import CompositeHook, HookManager
from hookloop.errors import OrderError, RegistrationError, UnknownNameError
from hookloop.testing import Harness

STAGES = ("evaluate", "observe", "report", "checkpoint", "publish")


class Silent:
    def on_epoch_end(self) -> None: ...


class Loud(Silent):
    pass


def order_of(**options_by_name: dict[str, Any]) -> list[str]:
    hooks = HookManager()
    for name, options in options_by_name.items():
        hooks.add(Silent(), name=name, **options)
    return hooks.order()


# Ties


def test_without_declarations_hooks_run_in_the_order_of_registration() -> None:
    assert order_of(c={}, a={}, b={}) == ["c", "a", "b"]


def test_a_higher_priority_runs_earlier() -> None:
    assert order_of(low={"priority": -1}, plain={}, high={"priority": 2.5}, also_plain={}) == [
        "high",
        "plain",
        "also_plain",
        "low",
    ]


def test_stages_run_one_after_the_other_whatever_the_priorities() -> None:
    hooks = {stage: {"stage": stage, "priority": 100 * index} for index, stage in enumerate(STAGES)}

    assert order_of(**dict(reversed(hooks.items()))) == list(STAGES)


def test_a_hook_that_names_no_stage_observes() -> None:
    assert order_of(late={"stage": "report"}, plain={}, early={"stage": "evaluate"}) == ["early", "plain", "late"]


# Relations


def test_after_and_before_win_over_priority_and_registration() -> None:
    assert order_of(a={"after": "b", "priority": 9}, b={}, c={"before": "b"}) == ["c", "b", "a"]


def test_whoever_needs_a_value_runs_after_everyone_who_provides_it() -> None:
    order = order_of(
        user={"needs": "score", "priority": 9}, first={"provides": "score"}, second={"provides": ("score", "other")}
    )

    assert order == ["first", "second", "user"]


def test_whoever_takes_a_value_as_a_parameter_needs_it() -> None:
    hooks = HookManager()
    hooks.add(Silent(), name="source", provides="score")
    hooks.add(lambda score: None, name="user", on="epoch_end", priority=9)

    assert hooks.order() == ["source", "user"]


def test_a_value_the_workload_offers_needs_no_provider() -> None:
    hooks = HookManager()
    hooks.offer("gradients_by_layer")

    hooks.add(Silent(), needs=("gradients_by_layer", "loss", "epochs"))

    assert hooks.order() == ["Silent"]


def test_a_hook_that_refines_a_value_may_both_need_and_provide_it() -> None:
    assert order_of(refiner={"needs": "score", "provides": "score"}, source={"provides": "score"}) == [
        "source",
        "refiner",
    ]


def test_a_class_name_means_all_hooks_of_that_class() -> None:
    hooks = HookManager()
    hooks.add(Silent(), name="listener", after="Loud")
    hooks.add(Loud(), name="first")
    hooks.add(Loud(), name="second")

    assert hooks.order() == ["first", "second", "listener"]


def test_a_group_name_means_all_hooks_of_that_group() -> None:
    hooks = HookManager()
    hooks.add(Silent(), name="listener", after="band")
    hooks.add(CompositeHook([Loud(), Loud()], name="band"))

    assert hooks.order() == ["band/Loud", "band/Loud_2", "listener"]


def test_a_removed_hook_leaves_the_order_of_the_others_alone() -> None:
    hooks = HookManager()
    for name, options in {"a": {"after": "c"}, "b": {}, "c": {}, "d": {"before": "c"}}.items():
        hooks.add(Silent(), name=name, **options)

    hooks.remove("b")

    assert hooks.order() == ["d", "c", "a"]


# For any set of declarations


@dataclass
class Declared:
    stage: str
    priority: int
    after: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    provides: list[str] = field(default_factory=list)


@st.composite
def declarations(draw: st.DrawFn) -> tuple[dict[str, Declared], set[tuple[str, str]]]:
    """Return hooks in the order of registration, and the pairs of which the first must run earlier."""
    count = draw(st.integers(1, 8))
    names = [f"hook_{number}" for number in draw(st.permutations(range(count)))]
    hooks = {
        name: Declared(draw(st.sampled_from(STAGES)), draw(st.integers(-2, 2))) for name in draw(st.permutations(names))
    }
    # Relations follow some order that keeps the stages, so that they never contradict each other.
    possible = sorted(names, key=lambda name: STAGES.index(hooks[name].stage))
    pairs = [(earlier, later) for i, earlier in enumerate(possible) for later in possible[i + 1 :]]
    related = draw(st.sets(st.sampled_from(pairs), max_size=10)) if pairs else set()
    for earlier, later in sorted(related):
        kind = draw(st.sampled_from(["after", "before", "value"]))
        if kind == "after":
            hooks[later].after.append(earlier)
        elif kind == "before":
            hooks[earlier].before.append(later)
        else:
            hooks[earlier].provides.append(f"{earlier}_for_{later}")
            hooks[later].needs.append(f"{earlier}_for_{later}")
    return hooks, related


def expected_order(hooks: dict[str, Declared], related: set[tuple[str, str]]) -> list[str]:
    """Take, again and again, the best of those whose predecessors have all been taken."""
    registration = list(hooks)
    order: list[str] = []
    while len(order) < len(hooks):
        ready = [
            name
            for name in registration
            if name not in order and all(earlier in order for earlier, later in related if later == name)
        ]
        order.append(
            min(
                ready,
                key=lambda name: (STAGES.index(hooks[name].stage), -hooks[name].priority, registration.index(name)),
            )
        )
    return order


@settings(max_examples=150, deadline=None)
@given(declarations())
def test_hooks_are_called_in_the_declared_order(
    declared: tuple[dict[str, Declared], set[tuple[str, str]]],
) -> None:
    hooks, related = declared
    harness = Harness()
    called: list[str] = []
    for name, options in hooks.items():
        harness.hooks.add(lambda name=name: called.append(name), name=name, on="epoch_end", **vars(options))

    harness.epoch()

    assert called == expected_order(hooks, related)
    assert all(called.index(earlier) < called.index(later) for earlier, later in related)
    assert harness.hooks.order() == called


PRINTS_AN_ORDER = """
from random import Random
from hookloop.core import HookManager

random = Random(7)
names = [f"hook_{number}" for number in range(40)]
hooks = HookManager()
for number, name in enumerate(names):
    earlier = set(random.sample(names[:number], min(number, 3)))
    hooks.add(
        lambda: None,
        name=name,
        after=earlier,
        provides={f"value_{number}", f"other_{number}"},
        needs={f"value_{random.randrange(number)}"} if number else set(),
        priority=random.choice([0, 0, 1]),
    )
print(*hooks.order())
"""


def test_the_order_is_the_same_under_every_hash_seed() -> None:
    orders = set()

    for seed in ("0", "1", "2024", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PRINTS_AN_ORDER]
        orders.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)

    assert len(orders) == 1
    assert len(orders.pop().split()) == 40


# What is refused


def test_hooks_that_wait_for_each_other_are_named_in_running_order() -> None:
    with pytest.raises(OrderError, match=r"wait for each other: 'a' → 'c' → 'b' → 'a'.*drop one") as caught:
        order_of(a={"after": "b"}, b={"needs": "value"}, c={"provides": "value", "after": "a"}, free={})

    assert "free" not in str(caught.value)


def test_a_missing_provider_is_named_with_the_nearest_value() -> None:
    with pytest.raises(OrderError, match=r"'user' needs 'grad_nrm', which no hook provides.*mean 'grad_norm'\?"):
        order_of(user={"needs": "grad_nrm"}, source={"provides": "grad_norm"})


def test_a_value_that_resembles_no_other_is_not_told_a_wrong_one() -> None:
    with pytest.raises(OrderError, match=r"needs 'grad_norm'.*Known: ") as caught:
        order_of(user={"needs": "grad_norm"}, source={"provides": "score"})

    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("option", ["after", "before"])
def test_an_unknown_name_in_a_relation_is_told_with_the_nearest_hook(option: str) -> None:
    words = rf"no hook 'chekpoint' for 'metrics' to run {option}\. Did you mean 'checkpoint'\?"

    with pytest.raises(UnknownNameError, match=words):
        order_of(metrics={option: "chekpoint"}, checkpoint={})


@pytest.mark.parametrize(
    "options",
    [
        {"upload": {"stage": "publish"}, "metrics": {"stage": "report", "after": "upload"}},
        {"upload": {"stage": "publish", "before": "metrics"}, "metrics": {"stage": "report"}},
        {"upload": {"stage": "publish", "provides": "uri"}, "metrics": {"stage": "report", "needs": "uri"}},
    ],
    ids=["after", "before", "needs"],
)
def test_a_relation_that_turns_stages_round_is_refused(options: dict[str, dict[str, str]]) -> None:
    words = (
        r"'metrics' \(stage 'report'\) must run after 'upload' \(stage 'publish'\), "
        "but stages run in the order evaluate → observe → report → checkpoint → publish; move one of the two"
    )

    with pytest.raises(OrderError, match=words):
        order_of(**options)


def test_a_hook_cannot_run_after_itself() -> None:
    with pytest.raises(RegistrationError, match=r"'a' .*after itself"):
        order_of(a={"after": "a"}, b={})


def test_an_impossible_order_is_refused_before_the_first_hook_is_called() -> None:
    called: list[str] = []
    harness = Harness()
    harness.hooks.add(lambda: called.append("free"), name="free", on="training_start")
    harness.hooks.add(Silent(), name="a", after="b")
    harness.hooks.add(Silent(), name="b", after="a")

    with pytest.raises(OrderError, match="wait for each other"):
        harness.start()

    assert called == []
