"""Small models for the recipes; any module can be trained."""

from hookloop.supervised.models.cnn import CNN
from hookloop.supervised.models.gpt import GPT

__all__ = ["CNN", "GPT"]
