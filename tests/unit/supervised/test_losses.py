"""Loss strategies, and what models return."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from hookloop.errors import ConfigError, NameClashError, UnknownNameError
from hookloop.supervised import LossStrategy, ModelOutput, make_loss, register_loss
from hookloop.supervised.losses import IGNORED, infer_loss

GENERATOR = torch.Generator().manual_seed(0)


def scores(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def numbers(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=GENERATOR)


def test_language_modelling_foretells_the_next_token_and_ignores_padding() -> None:
    logits, tokens = scores(2, 5, 7), torch.tensor([[1, 2, 3, 0, 0], [4, 5, 6, 1, 2]])

    loss = make_loss("language_modeling", pad_token_id=0).loss(logits, tokens)

    kept = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]
    by_hand = torch.stack(
        [functional.cross_entropy(logits[b, t][None], tokens[b, t + 1][None]) for b, t in kept]
    ).mean()
    torch.testing.assert_close(loss, by_hand)


@pytest.mark.parametrize("alias", ["causal_lm", "lm"])
def test_aliases_mean_the_same_strategy(alias: str) -> None:
    assert make_loss(alias).name == "language_modeling"


def test_a_sequence_of_one_token_has_nothing_to_foretell() -> None:
    with pytest.raises(ConfigError, match="at least 2 tokens"):
        make_loss("lm").loss(scores(2, 1, 7), numbers(7, 2, 1))


def test_masked_language_modelling_counts_masked_positions_alone() -> None:
    logits, targets = scores(2, 4, 5), torch.full((2, 4), IGNORED)
    targets[0, 1] = 3
    strategy = make_loss("masked_language_modeling")

    torch.testing.assert_close(
        strategy.loss(logits, targets), functional.cross_entropy(logits[0, 1][None], torch.tensor([3]))
    )
    assert int(strategy.weight(targets)) == 1


def test_segmentation_judges_every_pixel() -> None:
    logits, targets = scores(2, 3, 4, 4), numbers(3, 2, 1, 4, 4)
    strategy = make_loss("segmentation")

    torch.testing.assert_close(strategy.loss(logits, targets), functional.cross_entropy(logits, targets[:, 0]))
    with pytest.raises(ConfigError, match=r"needs scores \[B, C, H, W\]"):
        strategy.loss(scores(2, 3), targets)


def test_regression_does_not_broadcast_a_column_against_a_row() -> None:
    answers, targets = scores(6, 1), scores(6)

    torch.testing.assert_close(
        make_loss("regression").loss(answers, targets), functional.mse_loss(answers[:, 0], targets)
    )


def test_accuracy_leaves_out_what_is_ignored() -> None:
    logits, targets = torch.eye(3), torch.tensor([0, IGNORED, 1])
    right, answers = make_loss("classification").right(logits, targets) or (None, None)

    assert (int(right), int(answers)) == (1, 2)  # type: ignore[arg-type]


def test_a_misspelt_loss_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'language_modeling'"):
        make_loss("langage_modelling")


def test_a_name_that_is_taken_is_refused_and_the_same_class_twice_is_not() -> None:
    class Mine(LossStrategy):
        pass

    assert register_loss("mine of this test")(Mine) is register_loss("mine of this test")(Mine)
    with pytest.raises(NameClashError, match="'lm' is taken by LanguageModeling"):
        register_loss("mine too", "lm")(Mine)


@pytest.mark.parametrize(
    ("logits", "inputs", "targets", "name"),
    [
        (scores(4, 3), scores(4, 9), numbers(3, 4), "classification"),
        (scores(4, 3), scores(4, 9), numbers(3, 4, 1), "vision_classification"),
        (scores(4, 3, 5, 5), scores(4, 1, 5, 5), numbers(3, 4, 5, 5), "segmentation"),
        (scores(4, 1), scores(4, 9), scores(4), "regression"),
        (scores(2, 4, 9), torch.arange(8).view(2, 4), torch.arange(8).view(2, 4), "language_modeling"),
        (scores(2, 4, 9), torch.arange(8).view(2, 4), torch.arange(1, 9).view(2, 4), "token_classification"),
    ],
)
def test_a_first_batch_tells_which_loss_fits(
    logits: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor, name: str
) -> None:
    assert infer_loss(logits, inputs, targets, are_named=False) == name


def test_a_batch_that_could_mean_two_things_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"beyond doubt; name one: TrainingConfig\(loss=...\)"):
        infer_loss(scores(2, 4, 9), torch.zeros(2, 4, dtype=torch.int64), numbers(9, 2, 4) + 1, are_named=False)


LOGITS, LOSS = torch.ones(2, 3), torch.tensor(0.5)
Named = namedtuple("Named", ["loss", "logits"])


@pytest.mark.parametrize(
    ("raw", "loss"),
    [
        (LOGITS, None),
        ((LOGITS,), None),
        ([LOGITS, "attention"], None),
        ((LOSS, LOGITS), LOSS),
        ((LOGITS, LOSS), LOSS),
        ({"logits": LOGITS, "loss": LOSS}, LOSS),
        ({"anything": LOGITS}, None),
        (SimpleNamespace(logits=LOGITS, loss=LOSS), LOSS),
        (SimpleNamespace(last_hidden_state=LOGITS), None),
        (Named(LOSS, LOGITS), LOSS),
    ],
)
def test_scores_and_loss_are_found_in_whatever_a_model_returns(raw: object, loss: torch.Tensor | None) -> None:
    output = ModelOutput.from_raw(raw)

    assert output.logits is LOGITS
    assert output.loss is loss


def test_an_output_without_scores_is_refused() -> None:
    with pytest.raises(ConfigError, match="returned a SimpleNamespace without a tensor"):
        ModelOutput.from_raw(SimpleNamespace(hidden=3))
