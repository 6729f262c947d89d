"""Handwritten digits, as scikit-learn brings them."""

from __future__ import annotations

import torch
from torch.utils.data import TensorDataset

from hookloop.errors import MissingExtraError
from hookloop.supervised.data.tasks import split
from hookloop.supervised.datasets.split import Split

SPLIT_SEED = 0  # the same samples are held out whatever the seed of the run


def digits(*, val_share: float = 0.2) -> Split:
    """Return 1,797 images of 8 by 8 pixels with brightness between 0 and 1, and the digit that each shows."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise MissingExtraError("The data 'digits'", "examples") from error
    images, labels = load_digits(return_X_y=True)
    pixels = torch.as_tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    train, val = split(TensorDataset(pixels, torch.as_tensor(labels)), val_share, seed=SPLIT_SEED)
    return Split(train, val, classes=10, image_shape=(1, 8, 8))
