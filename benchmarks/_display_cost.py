"""What the live display costs: its thread on a pseudo-terminal, and its hook."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
import time

from rich.console import Console

from hookloop import TrainingLoop
from hookloop.display import Curve, LiveDisplay, RunView, SavedCheckpoint, TrackerHealth
from hookloop.hooks import DisplayHook
from hookloop.testing import ToyWorkload

SIZES = {"wide": (160, 50), "small": (80, 24)}


def view_of(number: int) -> RunView:
    """Return a view of a run of the recipe cartpole, with other figures than the one before."""
    points = tuple(float((step * 7 + number) % 13) for step in range(64))
    return RunView(
        run="bench", recipe="cartpole", device="cpu", num_envs=64, parameters=9155, epoch=number, step=number * 2048,
        total_steps=10**8, steps_per_second=80_000.0 + number, elapsed_seconds=float(number), eta_seconds=1e4 - number,
        phases={"collect": 0.4 + number % 9 / 100, "train": 0.5}, checkpoint=SavedCheckpoint(f"step-{number}", 1, 0.0),
        hooks={f"hook_{each}": (number + each) % 7 / 500 for each in range(9)},
        curves={f"losses/ppo/metric_{each}": Curve(number / (each + 1), points) for each in range(8)},
        trackers=(TrackerHealth("stats"), TrackerHealth("wandb", False, number, 0, "offline")),
    )  # fmt: skip


def display(seconds: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, (width, height) in SIZES.items():
        found[f"floor_percent_{name}"] = 100 * drawn(width, height, seconds, publishes=False)
        found[f"thread_percent_{name}"] = 100 * drawn(width, height, seconds, publishes=True)
    found.update(shown_by_hook(3_000))
    found["whole_percent"] = found["thread_percent_wide"] + 4 * found["hook_us_per_view"] / 1e4
    return found


def drawn(width: int, height: int, seconds: float, *, publishes: bool) -> float:
    """Return the share of one core that the thread takes."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    reader = threading.Thread(target=lambda: read_all(ours), daemon=True)
    reader.start()
    with os.fdopen(theirs, "w") as terminal:
        console = Console(file=terminal, force_terminal=True, width=width, height=height, color_system="256")
        live = LiveDisplay(console)
        live.start()
        began, number = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            number += 1
            if publishes:
                live.publish(view_of(number))
            time.sleep(0.1)
        share = live.cpu_seconds / (time.perf_counter() - began)
        live.stop()
    reader.join(1)
    os.close(ours)
    return share


def read_all(descriptor: int) -> None:
    try:
        while os.read(descriptor, 65536):
            pass
    except OSError:  # nobody holds the other side any more
        return


class Unseen(LiveDisplay):
    """Takes views, and draws nothing."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def publish(self, view: RunView) -> int:
        return 1


def shown_by_hook(epochs: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, interval_seconds in (("hook_us_per_epoch", 1e9), ("hook_us_per_view", 0.0)):
        hook = DisplayHook(10**9, live=Unseen(Console(file=open(os.devnull, "w"))))  # noqa: SIM115  # for the process
        hook.interval_seconds = interval_seconds
        loop = TrainingLoop(EightMetrics(epochs), [hook, *(Idle() for _ in range(8))])
        loop.run()
        spent = sum(cost.total_ns for cost in loop.hooks.costs() if cost.hook == "DisplayHook")
        found[name] = spent / 1e3 / epochs
    return found


class EightMetrics(ToyWorkload):
    def run_epoch(self, loop: TrainingLoop) -> None:
        super().run_epoch(loop)
        loop.context.metrics = {f"losses/ppo/metric_{each}": loop.clocks.epochs / (each + 1) for each in range(8)}


class Idle:
    def on_epoch_start(self) -> None: ...
    def on_minibatch_end(self) -> None: ...
    def on_epoch_end(self) -> None: ...
