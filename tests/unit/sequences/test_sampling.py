"""Sampling with a cache gives what a model without one would, row by row."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.errors import ConfigError
from hookloop.sequences.experience import token_log_probs
from hookloop.sequences.sampling import Completions, Drawing, complete
from hookloop.sequences.vocabulary import END, PAD
from hookloop.supervised.models.cache import CachedReader
from hookloop.supervised.models.gpt import GPT
from tests.unit.sequences.models import small_model

PROMPTS = [[2, 3, 4], [5], [6, 6, 2, 3, 4, 5], [3, 2]]
MOST = 10


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn_mask(found: Completions) -> torch.Tensor:
    places, begins = torch.arange(found.tokens.shape[1]), found.prompt_lengths[:, None]
    return ((places >= begins) & (places < begins + found.lengths[:, None])).float()


def without_end(seed: int = 0) -> GPT:
    """Return a model that never draws its end, so that a test can say how long its rows are."""
    model = small_model(seed=seed)
    with torch.no_grad():
        model.norm.bias[0] = 50.0
        model.symbol.weight[:, 0] = 0.0
        model.symbol.weight[END, 0] = -2.0
    return model


def test_a_model_that_reads_with_a_cache_scores_as_one_that_reads_all_at_once() -> None:
    model = small_model()
    tokens = torch.randint(0, 7, (3, 12), generator=generator())
    reader = CachedReader(model, 3, 12)

    found = [reader.read(tokens[:, :5])] + [reader.read(tokens[:, place : place + 1]) for place in range(5, 12)]

    assert torch.allclose(torch.stack(found, dim=1), model(tokens)[:, 4:], atol=1e-5)


def test_a_cache_refuses_what_it_cannot_take() -> None:
    model = small_model()
    reader = CachedReader(model, 1, 4)
    reader.read(torch.tensor([[2, 3]]))

    with pytest.raises(ConfigError, match="one at a time, got 2"):
        reader.read(torch.tensor([[2, 3]]))
    with pytest.raises(ConfigError, match="longer than the 4"):
        reader.read(torch.tensor([[2, 3, 4]]))
    with pytest.raises(ConfigError, match="A cache for 25 symbols is longer than the 24"):
        CachedReader(model, 1, 25)


@settings(max_examples=25, deadline=None)
@given(
    prompts=st.lists(st.lists(st.integers(2, 6), min_size=1, max_size=8), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
    temperature=st.sampled_from([0.5, 1.0, 1.7]),
)
def test_log_probs_are_those_of_a_forward_without_a_cache(
    prompts: list[list[int]], seed: int, temperature: float
) -> None:
    model = small_model()

    found = complete(model, prompts, MOST, generator=generator(seed), drawing=Drawing(temperature))

    mask = drawn_mask(found)
    expected = token_log_probs(model, found.tokens, mask, temperature)
    assert torch.allclose(found.log_probs, expected, atol=1e-5)
    assert ((found.log_probs == 0) | (mask == 1)).all()


def test_every_row_keeps_its_prompt_and_ends_at_its_own_end() -> None:
    found = complete(small_model(), PROMPTS * 8, MOST, generator=generator())

    for row, prompt in enumerate(PROMPTS * 8):
        begin, length = len(prompt), int(found.lengths[row])
        tokens = found.tokens[row].tolist()
        drawn = tokens[begin : begin + length]
        assert tokens[:begin] == prompt
        assert END not in drawn[:-1]
        assert drawn[-1] == END or length == MOST
        assert set(tokens[begin + length :]) <= {PAD}
    assert len(set(found.lengths.tolist())) > 1, "rows end at different places, or this test shows nothing"


def test_a_row_that_never_ends_is_cut_off() -> None:
    found = complete(without_end(), PROMPTS, MOST, generator=generator())

    assert found.lengths.tolist() == [MOST] * len(PROMPTS)


def test_sampling_stops_when_all_rows_have_ended() -> None:
    short, long = generator(3), generator(3)
    model = small_model()

    found = complete(model, [[2, 3]] * 2, 20, generator=short)
    complete(model, [[2, 3]] * 2, int(found.lengths.max()), generator=long)

    assert int(found.lengths.max()) < 20
    assert torch.equal(short.get_state(), long.get_state()), "nothing was drawn after the last end"


def test_the_likeliest_symbols_are_those_of_a_loop_without_a_cache() -> None:
    model = without_end()
    prompts = [[2, 3, 4], [5, 6, 2]]

    found = complete(model, prompts, 8, generator=generator(), drawing=Drawing(temperature=0))

    plain = model.continue_text(torch.tensor(prompts), 8, generator=generator(), temperature=0)
    assert torch.equal(found.tokens, plain)


def test_one_generator_gives_one_result_and_another_another() -> None:
    model = small_model()
    once, again, other = (complete(model, PROMPTS, MOST, generator=generator(seed)) for seed in (1, 1, 2))

    assert torch.equal(once.tokens, again.tokens)
    assert torch.equal(once.log_probs, again.log_probs)
    assert not torch.equal(once.tokens, other.tokens)


def test_symbols_are_drawn_as_often_as_they_are_likely() -> None:
    model, rows = small_model(spread=4.0), 20_000

    found = complete(model, [[2, 3, 4]] * rows, 1, generator=generator())

    share = torch.bincount(found.tokens[:, 3], minlength=7) / rows
    likely = model(torch.tensor([[2, 3, 4]]))[0, -1].softmax(dim=-1)
    assert (share - likely).abs().max() < 0.015, "four deviations of the most uncertain share"


def test_top_k_draws_from_the_likeliest_alone_and_says_how_likely_among_them() -> None:
    model = small_model(spread=4.0)
    likely = model(torch.tensor([[2, 3, 4]]))[0, -1].topk(2)

    found = complete(model, [[2, 3, 4]] * 200, 1, generator=generator(), drawing=Drawing(top_k=2))

    assert set(found.tokens[:, 3].tolist()) == set(likely.indices.tolist())
    chances = dict(zip(likely.indices.tolist(), likely.values.log_softmax(dim=-1).tolist(), strict=True))
    for token, log_prob in zip(found.tokens[:, 3].tolist(), found.log_probs[:, 3].tolist(), strict=True):
        assert log_prob == pytest.approx(chances[token], abs=1e-5)


def test_sampling_leaves_the_global_stream_and_the_weights_alone() -> None:
    model, before = small_model(), torch.get_rng_state()

    complete(model, PROMPTS, MOST, generator=generator())

    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("prompts", [[], [[2], []]])
def test_a_batch_without_a_beginning_is_refused(prompts: list[list[int]]) -> None:
    with pytest.raises(ConfigError, match="at least one symbol each"):
        complete(small_model(), prompts, 2, generator=generator())


@pytest.mark.parametrize(("options", "message"), [({"temperature": -1.0}, "got -1"), ({"top_k": 0}, "got 0")])
def test_a_drawing_that_means_nothing_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Drawing(**options)  # type: ignore[arg-type]  # what is wrong is what is tested
