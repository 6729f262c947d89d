"""Handwritten digits, as scikit-learn brings them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from hookloop.errors import ConfigError, MissingExtraError
from hookloop.supervised.data.tasks import split
from hookloop.supervised.datasets.split import DataForm, Split

SPLIT_SEED = 0  # the same samples are held out whatever the seed of the run
FORM = DataForm(classes=10, image_shape=(1, 8, 8))
BRIGHTEST = 16
"""What a pixel of scikit-learn's digits is at most; models see it as 1."""


def digits(*, val_share: float = 0.2) -> Split:
    """Return 1,797 images of 8 by 8 pixels with brightness between 0 and 1, and the digit that each shows."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise MissingExtraError("The data 'digits'", "examples") from error
    images, labels = load_digits(return_X_y=True)
    train, val = split(TensorDataset(digit_images(images), torch.as_tensor(labels)), val_share, seed=SPLIT_SEED)
    return Split(train=train, val=val, classes=FORM.classes, image_shape=FORM.image_shape)


def digit_images(values: Any) -> Tensor:
    """Return images as the model takes them, from rows of 64 pixels or from 8 by 8 pixels each, between 0 and 16."""
    pixels = torch.as_tensor(values, dtype=torch.float32)
    if pixels.shape[1:] not in ((64,), (8, 8), (1, 8, 8)):
        raise ConfigError(
            f"Digits are images of 8 by 8 pixels: an array of the shape [n, 64] or [n, 8, 8], got {list(pixels.shape)}."
        )
    bad = ~((pixels >= 0) & (pixels <= BRIGHTEST)).flatten(1).all(1)
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise ConfigError(
            f"The pixels of digits lie between 0 (dark) and {BRIGHTEST}; those of image {row} (from 0) lie between "
            f"{float(pixels[row].min()):.4g} and {float(pixels[row].max()):.4g}."
        )
    return pixels.reshape(-1, 1, 8, 8) / BRIGHTEST
