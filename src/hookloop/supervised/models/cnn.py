"""A convolutional network for images of a few pixels."""

from __future__ import annotations

from torch import Tensor, nn


class CNN(nn.Module):
    """Two convolutions, each followed by a rectifier, then pooling and two layers.

    Args:
        image_shape: Channels, height and width.
        classes: How many scores it returns.
        channels: Of the two convolutions.
        hidden: Width of the layer before the scores.
        dropout: Share of activations left out in training.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        classes: int,
        channels: tuple[int, int] = (32, 64),
        hidden: int = 128,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        depth, height, width = image_shape
        self.body = nn.Sequential(
            nn.Conv2d(depth, channels[0], 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels[0], channels[1], 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(channels[1] * (height // 2) * (width // 2), hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores of each class."""
        return self.body(images)
