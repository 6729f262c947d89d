"""Train the recipe cartpole and write the live display, as it was in the middle of the run, to an SVG file.

Run ``python tools/panel_picture.py docs/images/panel.svg``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from hookloop.cli.run_hooks import run_hooks
from hookloop.cli.workloads import build_job
from hookloop.config.overrides import apply_overrides
from hookloop.display import LiveDisplay, RunView, draw
from hookloop.hooks import DisplayHook
from hookloop.recipes import find_recipe
from hookloop.runs.folder import RunConfig, RunFolder

WIDTH, HEIGHT = 118, 28


class Kept(LiveDisplay):
    """Keeps the views that it would draw."""

    def __init__(self) -> None:
        super().__init__(Console(file=open(os.devnull, "w")))  # noqa: SIM115  # for as long as the process lasts
        self.views: list[RunView] = []

    def start(self) -> None:
        """Take no terminal."""

    def stop(self) -> None:
        """Have none to give back."""

    def publish(self, view: RunView) -> int:
        """Keep a view."""
        self.views.append(view)
        return len(self.views)


def trained() -> list[RunView]:
    """Train, with all hooks of the command, and return what its display would have shown."""
    overrides = ("stop_at_return=null", "checkpoints.schedule=every 10 epochs")
    settings = apply_overrides(find_recipe("cartpole"), overrides)
    live = Kept()
    with tempfile.TemporaryDirectory() as runs:
        folder = RunFolder(Path(runs) / "first")
        config = RunConfig("cartpole", 0, 1, settings.model_dump(mode="json"), settings.workload)
        hooks = run_hooks(folder, config, settings, "off", resume=None, lock=None)
        total, clock = config.goal
        shown = DisplayHook(total, clock, run="first", recipe="cartpole", device="cpu", live=live)
        build_job(settings, hooks=[*hooks, shown], seed=0).train()
    return live.views


def main() -> None:
    """Write the picture."""
    views = trained()
    view = next(each for each in views if each.step > 0.6 * (each.total_steps or 0))
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(draw(view, WIDTH, HEIGHT))
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(target), title="hookloop train cartpole")
    print(f"wrote {target}, the run at step {view.step:,} of {view.total_steps:,}")


if __name__ == "__main__":
    main()
