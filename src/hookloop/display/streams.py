"""Where the records of loggers go while a display has the terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def logging_through(before: tuple[TextIO, ...]) -> Generator[None]:
    """Let handlers that write to one of ``before`` write to what ``sys.stdout`` and ``sys.stderr`` are now.

    A handler keeps the stream it was made with; writing to the terminal behind the display's back it would tear it.
    """
    moved: list[tuple[logging.StreamHandler[TextIO], TextIO]] = []
    replacements = dict(zip(map(id, before), (sys.stdout, sys.stderr), strict=True))
    for handler in _stream_handlers():
        replacement = replacements.get(id(handler.stream))
        if replacement is not None and replacement is not handler.stream:
            moved.append((handler, handler.stream))
            handler.setStream(replacement)
    try:
        yield
    finally:
        for handler, stream in moved:
            handler.setStream(stream)


def _stream_handlers() -> list[logging.StreamHandler[TextIO]]:
    loggers = [logging.getLogger(), *logging.root.manager.loggerDict.values()]
    handlers = {
        id(handler): handler
        for logger in loggers
        if isinstance(logger, logging.Logger)  # others stand for loggers that nobody has asked for
        for handler in logger.handlers
    }
    return [each for each in handlers.values() if isinstance(each, logging.StreamHandler)]
