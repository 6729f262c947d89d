"""Confidence, drift and alerts, against plain arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from scipy.stats import entropy

from hookloop.errors import ConfigError, RegistrationError
from hookloop.supervised.engine.alerts import AlertLimits, find_alerts
from hookloop.supervised.engine.confidence import calibration_error, confidence_of
from hookloop.supervised.engine.drift import Profile, drift_between, drift_level, js_divergence
from hookloop.supervised.losses import IGNORED, make_loss

SCORES = st.integers(1, 20).flatmap(
    lambda rows: st.integers(1, 8).flatmap(
        lambda classes: st.tuples(
            st.lists(
                st.lists(st.floats(-20, 20, width=32), min_size=classes, max_size=classes),
                min_size=rows, max_size=rows,
            ),
            st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows),
        )
    )
)  # fmt: skip


def plain_calibration_error(confidences: list[float], right: list[bool], bins: int) -> float:
    """The definition: answers in bins (lower, upper], and the gap of each bin by its share."""
    total = 0.0
    for number in range(bins):
        inside = [k for k, each in enumerate(confidences) if number / bins < each <= (number + 1) / bins]
        if inside:
            gap = sum(confidences[k] for k in inside) / len(inside) - sum(right[k] for k in inside) / len(inside)
            total += len(inside) / len(confidences) * abs(gap)
    return total


@settings(deadline=None)  # the first call of some kernels takes half a second
@given(SCORES)
def test_confidence_is_what_the_probabilities_say(given_scores: tuple[list[list[float]], list[int]]) -> None:
    rows, targets = given_scores
    found = confidence_of(torch.tensor(rows), torch.tensor(targets))

    probabilities = softmax(np.array(rows, dtype=np.float64), axis=1)
    ranked = -np.sort(-probabilities, axis=1)
    assert found.top1 == pytest.approx(ranked[:, 0].mean(), rel=1e-9)
    assert found.top5 == pytest.approx(ranked[:, :5].sum(1).mean(), rel=1e-9)
    assert found.entropy == pytest.approx(entropy(probabilities, axis=1).mean(), rel=1e-6, abs=1e-9)
    assert 0 <= found.calibration_error <= 1


@given(st.lists(st.tuples(st.integers(1, 1000), st.booleans()), min_size=1, max_size=50), st.integers(1, 20))
def test_the_calibration_error_follows_its_definition(answers: list[tuple[int, bool]], bins: int) -> None:
    # A little off the edges of the bins, where rounding would decide.
    confidences, right = [each / 1000 - 1e-4 for each, _ in answers], [each for _, each in answers]

    found = calibration_error(torch.tensor(confidences, dtype=torch.float64), torch.tensor(right), bins)

    assert found == pytest.approx(plain_calibration_error(confidences, right, bins), abs=1e-9)


def test_a_certain_model_is_calibrated_if_it_is_right_and_not_if_it_is_wrong() -> None:
    scores = torch.eye(3) * 1000

    assert confidence_of(scores, torch.arange(3)).calibration_error == 0
    assert confidence_of(scores, torch.tensor([1, 2, 0])).calibration_error == 1
    assert confidence_of(scores, torch.arange(3)).entropy == 0


def test_confidence_of_other_shapes_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"got the shapes \[2, 3, 4\] and \[2\]"):
        confidence_of(torch.zeros(2, 3, 4), torch.zeros(2))
    with pytest.raises(ConfigError, match="at least one"):
        confidence_of(torch.zeros(0, 3), torch.zeros(0))


COUNTS = st.dictionaries(st.integers(0, 9), st.integers(1, 1000), min_size=1)


@given(COUNTS, COUNTS)
def test_the_divergence_is_the_square_of_the_distance_and_symmetric(one: dict[int, int], other: dict[int, int]) -> None:
    found = js_divergence(one, other)

    shares = [[counts.get(value, 0) for value in range(10)] for counts in (one, other)]
    assert found == pytest.approx(jensenshannon(*shares, base=2) ** 2, abs=1e-7)
    assert found == pytest.approx(js_divergence(other, one), abs=1e-12)
    assert 0 <= found <= 1


@given(COUNTS, st.integers(1, 9))
def test_only_shares_matter(counts: dict[int, int], times: int) -> None:
    more = {value: times * count for value, count in counts.items()}

    assert js_divergence(counts, more) == pytest.approx(0, abs=1e-12)


@given(
    st.lists(st.floats(-10, 10), min_size=1, max_size=60),
    st.lists(st.floats(-20, 20) | st.sampled_from([math.nan, math.inf, -math.inf]), min_size=1, max_size=60),
    st.integers(1, 12),
)
def test_numbers_are_counted_in_bins_of_equal_width(one: list[float], other: list[float], bins: int) -> None:
    found = Profile(bins)
    found.add(torch.tensor(one, dtype=torch.float64))
    second = found.like(torch.tensor(other, dtype=torch.float64))

    low, high = min(one), max(one)
    assert sum(found.counts["inputs"].values()) == len(one)
    assert set(found.counts["inputs"]) <= set(range(bins))
    beyond = second.counts["inputs"]
    assert beyond.get(-1, 0) == sum(value < low for value in other)
    assert beyond.get(bins, 0) == sum(value > high for value in other)
    assert beyond.get(bins + 1, 0) == sum(math.isnan(value) for value in other)
    assert sum(beyond.values()) == len(other)


def test_drift_is_told_part_by_part() -> None:
    x, y = torch.linspace(0, 1, 1000), torch.arange(1000) % 10

    same = drift_between((x, y), (x.flip(0), y))
    moved = drift_between((x, y), (x + 2, torch.zeros(1000, dtype=torch.int64)))

    assert same == {"inputs": 0, "targets": 0}
    assert moved["inputs"] == 1
    assert 0.2 < moved["targets"] < 1
    assert drift_between({"tokens": y}, {"tokens": y, "more": x}) == {"tokens": 0}
    assert [drift_level(each) for each in (0.0999, 0.1, 0.1999, 0.2)] == ["none", "warning", "warning", "alert"]


def test_a_profile_goes_on_from_its_state() -> None:
    whole, first = Profile(), Profile()
    batches = [(torch.randn(8, generator=torch.Generator().manual_seed(k)), torch.arange(8) % k) for k in (1, 2, 3)]
    for batch in batches:
        whole.add(batch)
    first.add(batches[0])
    second = Profile()
    second.load_state_dict(first.state_dict())
    for batch in batches[1:]:
        second.add(batch)

    assert second.counts == whole.counts


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ({"loss": 1.0}, {"loss": 1.2}, []),
        ({"loss": 1.0}, {"loss": 1.21}, ["loss rose to 1.21, above 1.2"]),
        ({"loss": -1.0}, {"loss": -0.7}, ["loss rose to -0.7, above -0.8"]),
        ({"val_loss": 1.0}, {"loss": 9.0}, []),
        ({"loss": 1.0}, {"loss": math.inf}, ["loss rose to inf, above 1.2"]),
        ({"loss": math.nan}, {"loss": 9.0}, []),
        ({"val_accuracy": 0.75}, {"val_accuracy": 0.71}, []),
        ({"val_accuracy": 0.75}, {"val_accuracy": 0.69}, ["val_accuracy fell to 0.69, below 0.7"]),
        ({}, {"grad_norm": 10.0}, []),
        ({}, {"grad_norm": 10.1}, ["grad_norm is 10.1, above 10"]),
    ],
)
def test_alerts_are_given_beyond_the_limits(before: dict[str, Any], now: dict[str, Any], told: list[str]) -> None:
    assert [str(alert) for alert in find_alerts(before, now)] == told


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0.01, 1))
def test_a_loss_is_a_spike_if_it_has_grown_by_more_than_the_share(old: float, new: float, share: float) -> None:
    assert bool(find_alerts({"loss": old}, {"loss": new}, AlertLimits(loss_spike=share))) == (new > old + share * old)


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(RegistrationError, match="loss_spike must be more than 0, got 0"):
        AlertLimits(loss_spike=0)


@pytest.mark.parametrize(
    ("loss", "scores", "targets", "answers"),
    [
        ("classification", (4, 3), (4,), 4),
        ("vision_classification", (4, 3), (4, 1), 4),
        ("segmentation", (2, 3, 2, 2), (2, 1, 2, 2), 8),
        ("token_classification", (2, 5, 3), (2, 5), 10),
        ("language_modeling", (2, 5, 3), (2, 5), 8),
    ],
)
def test_every_loss_that_classifies_gives_its_answers(
    loss: str, scores: tuple[int, ...], targets: tuple[int, ...], answers: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits, wanted = torch.randn(scores, generator=generator), torch.randint(3, targets, generator=generator)
    wanted.view(-1)[-1] = IGNORED
    strategy = make_loss(loss)

    found, right = strategy.answers(logits, wanted), strategy.right(logits, wanted)

    assert found is not None
    assert right is not None
    assert (len(found[0]), len(found[1])) == (answers - 1, answers - 1)
    assert int((found[0].argmax(1) == found[1]).sum()) == int(right[0])
    assert make_loss("regression").answers(logits, wanted) is None
