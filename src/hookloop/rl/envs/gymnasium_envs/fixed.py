"""Values that are part of how an environment was made, such as functions: compared, and never saved."""

from __future__ import annotations

import logging
import re
import types
from collections.abc import Collection, Iterable
from enum import Enum
from functools import partial
from pathlib import PurePath

import numpy as np
from gymnasium.envs.registration import EnvSpec, WrapperSpec

FIXED_KINDS = (
    types.ModuleType, type, Enum, range, np.dtype, np.ufunc, EnvSpec, WrapperSpec, PurePath, re.Pattern, logging.Logger,
    type(None), bool, int, float, str, bytes,
)  # fmt: skip
_FUNCTION_KINDS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, partial)
_DEEPEST = 12


def is_fixed_kind(value: object) -> bool:
    """Tell whether the value belongs to a kind that is compared as a whole and not looked into."""
    return isinstance(value, (*FIXED_KINDS, *_FUNCTION_KINDS))


def fixed_form(value: object, known: Collection[int], depth: int = 0) -> object:
    """Return something to compare by, if all that could change in the value shows in it; None if not.

    Args:
        value: Mostly a function, or a container with functions.
        known: The ids of the layers whose insides are saved; a method of one of them is as good as a function.
        depth: How deep the value lies in the one asked for.
    """
    if depth > _DEEPEST:
        return None
    if isinstance(value, FIXED_KINDS):
        return (type(value), value)
    if id(value) in known:
        return ("layer", id(value))
    if isinstance(value, _FUNCTION_KINDS):
        return _function_form(value, known, depth + 1)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, list | tuple):
        return _joined(type(value), value, known, depth + 1)
    if isinstance(value, dict):
        return _joined((type(value), tuple(value)), value.values(), known, depth + 1)
    return None


def _function_form(value: object, known: Collection[int], depth: int) -> object:
    if isinstance(value, partial):
        return _joined("partial", [value.func, value.args, value.keywords], known, depth)
    if isinstance(value, types.MethodType):
        return ("method", value.__func__, id(value.__self__)) if id(value.__self__) in known else None
    if isinstance(value, types.BuiltinFunctionType):
        # A method of a built-in object, such as generator.random, has an owner whose state is not seen here.
        return (type(value), value) if isinstance(value.__self__, types.ModuleType | None) else None
    if isinstance(value, types.FunctionType):
        # What a function closes over, and its defaults, are where one can keep a counter.
        try:
            closed_over = [cell.cell_contents for cell in value.__closure__ or ()]
        except ValueError:
            return None
        return _joined(value, [*closed_over, *(value.__defaults__ or ())], known, depth)
    return None


def _joined(kind: object, parts: Iterable[object], known: Collection[int], depth: int) -> object:
    forms = tuple(fixed_form(part, known, depth) for part in parts)
    return None if None in forms else (kind, forms)
