"""The last, the best, one every so often, and the pinned are kept; everything else may go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop.checkpoints.manifest import Manifest
from hookloop.checkpoints.retention import Retention
from hookloop.errors import ConfigError
from tests.unit.checkpoints.test_manifest import manifest


def at(step: int, score: float | None = None) -> Manifest:
    metrics = {} if score is None else {"return/mean": score}
    return manifest(step=step, name=f"step-{step:012d}", metrics=metrics)


@st.composite
def lineages(draw: st.DrawFn) -> list[Manifest]:
    steps = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=15)))
    return [at(step, draw(st.none() | st.sampled_from([-1.0, 0.0, 0.5, 2.0]))) for step in steps]


rules = st.builds(
    Retention,
    keep_last=st.integers(1, 5),
    keep_best=st.integers(0, 4),
    keep_every=st.none() | st.integers(1, 20),
    mode=st.sampled_from(["max", "min"]),
)


def kept_by_the_book(rule: Retention, lineage: list[Manifest], pinned: set[str]) -> set[str]:
    """Say once more what is kept, without a thought for how it is found."""
    kept = {each.name for number, each in enumerate(lineage) if number >= len(lineage) - rule.keep_last}
    scored = [each for each in lineage if "return/mean" in each.metrics]
    for each in scored:
        score = each.metrics["return/mean"]
        better = [
            other for other in scored
            if (other.metrics["return/mean"] > score if rule.mode == "max" else other.metrics["return/mean"] < score)
            or (other.metrics["return/mean"] == score and other.step < each.step)
        ]  # fmt: skip
        if len(better) < rule.keep_best:
            kept.add(each.name)
    for multiple in range(rule.keep_every or 1000, 100, rule.keep_every or 1000):
        within = [each for each in lineage if multiple <= each.step < multiple + (rule.keep_every or 0)]
        kept.update(each.name for each in within[:1])
    return kept | {each.name for each in lineage if each.name in pinned}


@given(rules, lineages(), st.sets(st.integers(0, 60), max_size=4))
def test_what_is_kept_is_the_last_the_best_every_and_the_pinned(
    rule: Retention, lineage: list[Manifest], pinned_steps: set[int]
) -> None:
    pinned = {f"step-{step:012d}" for step in pinned_steps}

    expendable = rule.expendable(lineage, pinned)

    assert {each.name for each in lineage} - set(expendable) == kept_by_the_book(rule, lineage, pinned)
    assert len(expendable) == len(set(expendable))


@given(rules, lineages())
def test_the_newest_is_never_let_go(rule: Retention, lineage: list[Manifest]) -> None:
    assert lineage[-1].name not in rule.expendable(lineage)


@given(rules, lineages())
def test_one_that_is_kept_every_so_often_is_kept_for_good(rule: Retention, lineage: list[Manifest]) -> None:
    """Pruning after each save keeps the same marks as pruning once at the end."""
    only_marks = Retention(1, 0, rule.keep_every)
    there: list[Manifest] = []
    for each in lineage:
        there.append(each)
        gone = only_marks.expendable(there)
        there = [one for one in there if one.name not in gone]

    assert [one.name for one in there] == [
        one.name for one in lineage if one.name not in only_marks.expendable(lineage)
    ]


def test_of_equally_good_ones_the_earlier_is_the_best() -> None:
    assert [each.step for each in Retention().best([at(1, 0.5), at(2, 2.0), at(3, 2.0), at(4)])] == [2, 3, 1]
    assert [each.step for each in Retention(mode="min").best([at(1, 2.0), at(2, 0.5), at(3, 0.5)])] == [2, 3, 1]


@pytest.mark.parametrize(
    "arguments", [{"keep_last": 0}, {"keep_best": -1}, {"keep_every": 0}, {"mode": "highest"}], ids=str
)
def test_a_rule_that_means_nothing_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        Retention(**arguments)
