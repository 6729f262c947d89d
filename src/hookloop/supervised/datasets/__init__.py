"""Data for the recipes: found on the user's machine, never downloaded."""

from hookloop.supervised.datasets.charlm import charlm, decode, encode
from hookloop.supervised.datasets.digits import digits
from hookloop.supervised.datasets.split import Split

__all__ = ["Split", "charlm", "decode", "digits", "encode"]
