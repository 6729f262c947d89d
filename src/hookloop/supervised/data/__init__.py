"""Data of supervised runs: any dataset, loader or tensors, in an order that is a function of seed, epoch and index."""

from hookloop.supervised.data.collators import make_collator, register_collator
from hookloop.supervised.data.factory import DataLoaderFactory
from hookloop.supervised.data.source import Source, order_of
from hookloop.supervised.data.tasks import TaskSpec, UniversalDataModule

__all__ = [
    "DataLoaderFactory",
    "Source",
    "TaskSpec",
    "UniversalDataModule",
    "make_collator",
    "order_of",
    "register_collator",
]
