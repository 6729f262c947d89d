"""What every pool refuses: tasks before weights, tasks that are on their way already, versions that do not grow."""

from __future__ import annotations

from hookloop.pools.errors import PoolUsageError
from hookloop.pools.protocol import Task, TaskKey

NO_WEIGHTS = -1


class Admission:
    """Keeps the version of the weights and the keys that are on their way."""

    def __init__(self) -> None:
        self.version = NO_WEIGHTS
        self._under_way: set[TaskKey] = set()

    def take_version(self, version: int) -> None:
        """Move on to newer weights."""
        if version <= self.version:
            raise PoolUsageError(
                f"Weights of version {version} were published after version {self.version}; versions only grow."
            )
        self.version = version

    def admit(self, task: Task) -> None:
        """Let a task in, or say why not."""
        if self.version == NO_WEIGHTS:
            raise PoolUsageError(
                f"Task {tuple(task.key)} came before any weights, and a worker never acts without; call publish first."
            )
        if task.min_version > self.version:
            raise PoolUsageError(
                f"Task {tuple(task.key)} wants weights of version {task.min_version} or newer, "
                f"but {self.version} is the newest that was published; publish them first."
            )
        if task.key in self._under_way:
            raise PoolUsageError(f"Task {tuple(task.key)} is on its way already; use another slot or iteration.")
        self._under_way.add(task.key)

    def is_under_way(self, key: TaskKey) -> bool:
        """Tell whether the result of this task is still awaited."""
        return key in self._under_way

    def forget(self, key: TaskKey) -> None:
        """Note that a task has its result, or was given up."""
        self._under_way.discard(key)
