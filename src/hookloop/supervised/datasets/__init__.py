"""Data for the recipes: found on the user's machine, never downloaded."""

from hookloop.supervised.datasets.charlm import charlm, decode, encode
from hookloop.supervised.datasets.digits import digits
from hookloop.supervised.datasets.split import DataForm, Split

__all__ = ["DataForm", "Split", "charlm", "decode", "digits", "encode"]
