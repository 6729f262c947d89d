"""The settings of workers: where they are, and what a cluster sets aside for them."""

from __future__ import annotations

import pytest

from hookloop.cli.changes import changes_between
from hookloop.config.overrides import apply_overrides
from hookloop.errors import ConfigError
from hookloop.rl.config import EnvConfig, RLConfig

CONFIG = RLConfig(env=EnvConfig(id="CartPole-v1"))


@pytest.mark.parametrize("cluster", ["ray", "ray://head:10001"])
def test_whoever_names_a_cluster_wants_workers_there(cluster: str) -> None:
    assert CONFIG.workers is None
    assert apply_overrides(CONFIG, [f"cluster={cluster}"]).workers == "auto"
    assert apply_overrides(CONFIG, [f"cluster={cluster}", "workers=3"]).workers == 3
    assert apply_overrides(CONFIG, ["cluster=local"]).workers is None


def test_whoever_wants_rollouts_while_this_process_learns_wants_workers() -> None:
    assert apply_overrides(CONFIG, ["rollout_mode=async"]).workers == "auto"
    assert apply_overrides(CONFIG, ["rollout_mode=async", "workers=3"]).workers == 3
    assert apply_overrides(CONFIG, ["rollout_mode=exact"]).workers is None


@pytest.mark.parametrize("cluster", ["rey", "ray://head", "http://head:8265", ""])
def test_what_is_no_cluster_is_refused(cluster: str) -> None:
    with pytest.raises(ConfigError, match="cluster is "):
        apply_overrides(CONFIG, [f"cluster={cluster}"])


def test_where_workers_are_may_change_at_a_resume() -> None:
    there = apply_overrides(
        CONFIG, ["workers=2", "cluster=ray", "worker_cpus=0.5", 'worker_resources={"simulator": 1}']
    )
    here = apply_overrides(CONFIG, ["workers=2"])
    changes = changes_between(here.model_dump(mode="json"), there.model_dump(mode="json"))
    assert {change.path.partition(".")[0] for change in changes} == {"cluster", "worker_cpus", "worker_resources"}
    assert {change.effect for change in changes} == {"harmless"}
