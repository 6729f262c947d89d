"""The graph of lessons: every name known, and no way back to where one came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hookloop.errors import ConfigError, UnknownNameError

Graph = Mapping[str, Sequence[str]]
"""Each lesson with those that come before it."""


def refuse_unknown(graph: Graph) -> None:
    """Refuse a lesson that depends on one that does not exist, on itself, or twice on the same one."""
    for lesson, before in graph.items():
        for name in before:
            if name not in graph:
                raise UnknownNameError("lesson", name, graph, where=f"among the dependencies of {lesson!r}")
            if before.count(name) > 1:
                raise ConfigError(f"The lesson {lesson!r} depends twice on {name!r}; leave one of the two out.")


def refuse_cycles(graph: Graph) -> None:
    """Refuse lessons that wait for each other."""
    settled: set[str] = set()
    for start in graph:
        path: list[str] = []
        _walk(start, graph, path, settled)


def _walk(start: str, graph: Graph, path: list[str], settled: set[str]) -> None:
    """Visit all that comes before ``start``; by hand, because a ladder may be longer than Python's stack."""
    waiting = [iter((start,))]
    while waiting:
        lesson = next(waiting[-1], None)
        if lesson is None:
            waiting.pop()
            if path:
                settled.add(path.pop())
        elif lesson in path:
            circle = [*path[path.index(lesson) :], lesson]
            raise ConfigError(
                f"Lessons wait for each other and none could ever open: {' -> '.join(circle)} "
                "(each depends on the next). Take one of these dependencies away."
            )
        elif lesson not in settled:
            path.append(lesson)
            waiting.append(iter(graph[lesson]))
