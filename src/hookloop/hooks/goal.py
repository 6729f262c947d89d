"""A run that ends when it has reached what it is for."""

from __future__ import annotations

from hookloop.core import HookContext


class GoalHook:
    """Ask the run to stop once a metric has reached ``goal``.

    Args:
        goal: What to reach.
        metric: The name of the metric, as the workload reports it at the end of an epoch.
        min_episodes: Episodes the metric must be a mean of, so that a lucky start does not end the run.
    """

    def __init__(self, goal: float, metric: str = "return/mean", min_episodes: int = 100) -> None:
        self.goal = goal
        self.metric = metric
        self.min_episodes = min_episodes

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Look at the metric."""
        value = ctx.metrics.get(self.metric)
        if value is not None and value >= self.goal and ctx.state.clocks.episodes >= self.min_episodes:
            ctx.request_stop(f"{self.metric} reached {value:.4g}, the goal is {self.goal:g}")
