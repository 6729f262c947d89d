"""Sources of batches: who is in which batch follows from seed, epoch and index alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from hookloop.errors import ConfigError, UnknownNameError
from hookloop.supervised import DataLoaderFactory, TaskSpec, UniversalDataModule, register_collator
from hookloop.supervised.data import make_collator


class Numbers:
    """A map dataset of its own numbers."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:
        return index


class Table:
    """What a Hugging Face dataset looks like from here."""

    _fingerprint = "abc"
    column_names = ("input_ids", "label")

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": list(range(index + 1)), "label": index % 2}

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        return [self[index] for index in indices]


def drawn(source: Any, epoch: int = 0, start: int = 0) -> list[list[int]]:
    return [batch.tolist() for batch in source.iterate(epoch, start)]


@settings(deadline=None)
@given(
    st.integers(1, 60), st.integers(1, 12), st.booleans(), st.booleans(), st.integers(0, 3), st.integers(0, 2**40),
)  # fmt: skip
def test_any_epoch_can_be_entered_anywhere(
    samples: int, batch_size: int, shuffle: bool, drop_last: bool, epoch: int, seed: int
) -> None:
    factory = DataLoaderFactory(batch_size, seed, drop_last and samples >= batch_size)
    tensors = factory.make(torch.arange(samples), shuffle=shuffle)
    objects = factory.make(Numbers(samples), shuffle=shuffle)

    whole = drawn(tensors, epoch)

    assert drawn(objects, epoch) == whole
    assert [len(batch) for batch in whole] == [tensors.size_of(index) for index in range(tensors.batches or 0)]
    seen = [number for batch in whole for number in batch]
    assert len(set(seen)) == len(seen) <= samples
    assert (seen == sorted(seen)) or shuffle
    for start in range(len(whole) + 1):
        assert drawn(tensors, epoch, start) == drawn(objects, epoch, start) == whole[start:]


def test_each_epoch_has_an_order_of_its_own() -> None:
    source = DataLoaderFactory(10, seed=1).make(torch.arange(50))

    assert drawn(source, 0) != drawn(source, 1)
    assert drawn(source, 0) == drawn(source, 0)


def test_the_order_of_the_data_draws_from_no_global_stream() -> None:
    before = torch.get_rng_state()

    drawn(DataLoaderFactory(3).make(torch.arange(10)))

    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_loader_keeps_its_batch_size_and_its_wish_to_shuffle(shuffle: bool) -> None:
    loader = DataLoader(TensorDataset(torch.arange(10)), batch_size=4, shuffle=shuffle, drop_last=True)

    source = DataLoaderFactory(batch_size=99, seed=3).make(loader)

    batches = [batch[0].tolist() for batch in source.iterate(0)]
    assert [len(batch) for batch in batches] == [4, 4]
    assert (batches == [[0, 1, 2, 3], [4, 5, 6, 7]]) is not shuffle


def test_rows_of_a_table_become_a_padded_mapping() -> None:
    source = DataLoaderFactory(3, pad_token_id=9).make(Table(), shuffle=False)

    batch = next(iter(source.iterate(0)))

    assert batch["input_ids"].tolist() == [[0, 9, 9], [0, 1, 9], [0, 1, 2]]
    assert batch["label"].tolist() == [0, 1, 0]
    assert source.fingerprint["content"] == "abc"


def test_the_collator_for_text_masks_and_ignores_the_padding() -> None:
    batch = make_collator("language_modeling", pad_token_id=7)([{"input_ids": [1, 2]}, {"input_ids": [3]}])

    assert batch["input_ids"].tolist() == [[1, 2], [3, 7]]
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0]]
    assert batch["labels"].tolist() == [[1, 2], [3, -100]]


def test_an_unknown_collator_is_answered_with_the_nearest() -> None:
    register_collator("mine of this test")(lambda pad_token_id: list)

    assert make_collator("mine of this test")([1, 2]) == [1, 2]
    with pytest.raises(UnknownNameError, match="Did you mean 'default'"):
        make_collator("defualt")


@pytest.mark.parametrize("data", [[], torch.zeros(0, 3), TensorDataset(torch.zeros(0)), {"x": torch.zeros(0)}])
def test_empty_data_are_refused(data: Any) -> None:
    with pytest.raises(ConfigError, match="empty: they hold no samples"):
        DataLoaderFactory(4).make(data)


@pytest.mark.parametrize(("data", "words"), [(3, "neither __getitem__"), ("text", "got 'text'"), (None, "got None")])
def test_what_is_no_data_is_refused(data: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DataLoaderFactory(4).make(data)


def test_columns_of_two_lengths_are_refused() -> None:
    with pytest.raises(ConfigError, match="one length, got 3, 4"):
        DataLoaderFactory(4).make((torch.zeros(3), torch.zeros(4)))


def test_an_iterator_says_that_it_cannot_be_resumed_and_lasts_one_epoch() -> None:
    source = DataLoaderFactory(2).make(iter(range(5)))

    assert source.exactness == "learner-exact"
    assert drawn(source) == [[0, 1], [2, 3], [4]]
    with pytest.raises(ConfigError, match="used up after one epoch"):
        drawn(source, epoch=1)


def test_a_data_module_sets_a_share_apart_that_follows_from_the_seed() -> None:
    x, y = torch.arange(50.0)[:, None], torch.arange(50)
    modules = [
        UniversalDataModule(TaskSpec(modality="tabular"), (x, y), val_share=0.2, seed=seed) for seed in (1, 1, 2)
    ]

    held_out = [module.val_data.tensors[1].tolist() for module in modules]
    trained = modules[0].train_data.tensors[1].tolist()
    assert held_out[0] == held_out[1] != held_out[2]
    assert sorted(trained + held_out[0]) == list(range(50))
    assert len(held_out[0]) == 10


def test_a_task_picks_the_fields_of_a_sample() -> None:
    rows = [{"text": [1, 2], "grade": 1, "id": "a"}, {"text": [3, 4], "grade": 0, "id": "b"}] * 10
    task = TaskSpec(modality="tabular", input_fields=("text",), target_field="grade")

    module = UniversalDataModule(task, rows, val_share=0.5)

    assert set(module.train_data[0]) == {"text", "labels"}
    with pytest.raises(UnknownNameError, match="Did you mean 'grade'"):
        UniversalDataModule(task.model_copy(update={"target_field": "grad"}), rows).train_data[0]
