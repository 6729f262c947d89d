"""The mistakes an environment, or who uses one, can make.

::

    HookloopError
    ├── UnknownEnvError (LookupError)       no environment goes by that id
    ├── UnsupportedSpaceError (TypeError)   a space that no array can stand for
    ├── EnvMismatchError (ValueError)       the environment broke what its spaces promise
    ├── ActionMismatchError (ValueError)    the actions handed over do not fit the environment
    ├── EnvStateError (ValueError)          a saved state does not fit these environments
    └── EnvProcessError (RuntimeError)      the processes of environments did not start
"""

from __future__ import annotations

from collections.abc import Iterable

from hookloop.errors import HookloopError, did_you_mean


class UnknownEnvError(HookloopError, LookupError):
    """No environment goes by this id."""

    def __init__(self, id: str, known: Iterable[str], *, where: str, next_step: str) -> None:
        near = did_you_mean(id, known)
        # Without a near miss the hint lists every name there is, and there are hundreds of environments.
        hint = near if near.startswith(" Did you mean") else ""
        super().__init__(f"There is no environment {id!r} in {where}.{hint} {next_step}")


class UnsupportedSpaceError(HookloopError, TypeError):
    """A space was declared that no array of numbers can stand for."""


class EnvMismatchError(HookloopError, ValueError):
    """An environment gave something that does not fit what its spaces or its flags promise."""


class ActionMismatchError(HookloopError, ValueError):
    """Actions were handed over that do not fit the environment's action space."""


class EnvStateError(HookloopError, ValueError):
    """A saved state does not fit these environments."""


class EnvProcessError(HookloopError, RuntimeError):
    """The processes in which environments were to run did not start."""
