"""Rollouts that are asked for and come home: late, from a lost worker, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from hookloop.pools import InlinePool, PoolHealth, Result, Task, TaskFailedError
from hookloop.rl.slots import RolloutFailedError
from hookloop.rl.slots.pinning import PinnedPools
from tests.unit.rl.slots.envs import fitting_policy, make_envs, performer_of, trainer_of
from tests.unit.rl.slots.pools import LatePool, ScatteredPool


def test_an_asynchronous_run_learns_from_nothing_older_than_its_bound() -> None:
    pools: list[LatePool] = []

    def late(make: Any) -> LatePool:
        pools.append(LatePool(make, late_by={0: 3, 1: 1}))
        return pools[-1]

    trainer = trainer_of("plain", late, slots=4, mode="async")
    lags: list[float] = []

    def look(ctx: Any) -> None:
        collector = ctx.trainer.workload.collector
        lags.append(ctx.metrics["workers/lag"])
        assert max(collector.versions) - min(collector.versions) <= 1

    trainer.add_hook(look, name="look", on="epoch_end")
    trainer.train(8 * 4 * 12)

    dropped = trainer.loop.context.metrics["workers/dropped"]
    stale = [result for result in pools[0].given if result.key.slot == 0]
    assert 0 < dropped <= len(stale), "those that came three versions late, and no others"
    assert max(lags) <= 1.0
    assert any(lags), "some were a version old"


def test_an_asynchronous_run_says_that_it_is_approximate() -> None:
    trainer = trainer_of("plain", lambda make: LatePool(make, {}), mode="async")

    assert trainer.workload.exactness == "approximate"
    assert "those under way are not saved" in trainer.workload.inexact_because


def test_an_asynchronous_run_goes_on_from_what_was_saved() -> None:
    trainer = trainer_of("plain", lambda make: LatePool(make, {0: 2}), mode="async")
    trainer.train(8 * 2 * 3)
    saved = trainer.state_dict()
    trainer.train(8 * 2 * 5)

    trainer.load_state_dict(saved)
    result = trainer.train(8 * 2 * 6)

    assert result.epochs == 6


def test_slots_are_played_while_the_learner_learns() -> None:
    pools: list[InlinePool] = []

    def inline(make: Any) -> InlinePool:
        pools.append(InlinePool(make))
        return pools[-1]

    trainer = trainer_of("plain", inline, slots=3, mode="async")
    waiting: list[int] = []
    trainer.add_hook(lambda ctx: waiting.append(pools[-1].health().waiting), name="look", on="train_phase_start")
    trainer.train(8 * 3 * 3)

    assert waiting == [3, 3, 3], "there is a task for every slot whenever learning begins"


def test_environments_that_cannot_be_saved_go_on_with_their_worker() -> None:
    def pinned(make: Any) -> PinnedPools:
        return PinnedPools(lambda: InlinePool(make), 2)

    trainer = trainer_of("unsaved", pinned, slots=4, horizon=7)
    result = trainer.train(7 * 4 * 10)

    assert trainer.workload.exactness == "learner-exact"
    assert "engine holds a generator" in trainer.workload.inexact_because
    assert result.episodes == 4 * 7, "episodes of ten steps end in spite of rollouts of seven"
    assert "workers/begun_anew" not in trainer.loop.context.metrics


def test_environments_that_cannot_be_saved_begin_anew_with_another_worker_and_that_is_told() -> None:
    trainer = trainer_of("unsaved", lambda make: ScatteredPool(make, workers=2), slots=2, horizon=7)
    trainer.train(7 * 2 * 10)

    assert trainer.loop.context.metrics["workers/begun_anew"] > 0


class GivingUpPool(InlinePool):
    """Plays one iteration, and gives the first task of the next one up."""

    def poll(self, deadline_seconds: float | None = None) -> list[Result]:
        task: Task = self._waiting[0]
        if task.key.iteration == 1:
            raise TaskFailedError("It ended three workers.", key=task.key)
        return super().poll(deadline_seconds)


def test_a_rollout_that_is_given_up_ends_the_run_with_what_is_needed_to_play_it_again() -> None:
    trainer = trainer_of("plain", GivingUpPool)

    with pytest.raises(RolloutFailedError, match=r"slot 0 in iteration 1 was given up.*seed \d+.*key \d+") as raised:
        trainer.train(8 * 2 * 4)

    assert str(trainer.slots.envs.slot_seed(0)) in str(raised.value)
    assert raised.value.key == (0, 1)


def test_how_the_workers_are_is_among_the_metrics() -> None:
    class Troubled(InlinePool):
        def health(self) -> PoolHealth:
            return PoolHealth(workers=2, alive=1, waiting=0, running=0, deaths=3, retries=2)

    trainer = trainer_of("plain", Troubled)
    trainer.train(8 * 2)

    metrics = trainer.loop.context.metrics
    assert {name: metrics[f"workers/{name}"] for name in ("alive", "deaths", "retries")} == {
        "alive": 1.0,
        "deaths": 3.0,
        "retries": 2.0,
    }


def test_the_workers_end_with_the_run_and_others_begin_with_the_next() -> None:
    class Closing(InlinePool):
        closed = 0

        def close(self, deadline_seconds: float = 5.0) -> None:
            super().close()
            Closing.closed += 1

    made: list[Closing] = []

    def make_pool(make: Any) -> Closing:
        made.append(Closing(make))
        return made[-1]

    trainer = trainer_of("plain", make_pool)
    trainer.train(8 * 2)
    trainer.train(8 * 2 * 2)

    assert len(made) == Closing.closed == 2


def test_a_failing_environment_raises_in_this_process_without_workers() -> None:
    with pytest.raises(ZeroDivisionError, match="the fifth step"):
        trainer_of("failing", InlinePool).train(16)


def test_a_slot_that_failed_half_way_is_played_from_its_place_again() -> None:
    gathering: Any = trainer_of("fragile", InlinePool, horizon=4).workload.collector.gathering
    weights = fitting_policy(make_envs("plain", 1)).state_dict()
    played: list[Any] = []
    for kind in ("plain", "fragile"):
        performer = performer_of(kind, envs_per_slot=1, horizon=4)()
        performer.take_weights(0, weights)
        first = performer.perform(gathering.make_payload(0, 0, 7))
        payload = {**gathering.make_payload(0, 1, 8), "place": first["place"], "after": [0, 0]}
        if kind == "fragile":
            with pytest.raises(ZeroDivisionError, match="once"):
                performer.perform(payload)
        played.append(performer.perform(payload)["columns"])

    assert (played[0]["obs"] == played[1]["obs"]).all()
    assert (played[0]["actions"] == played[1]["actions"]).all()
    assert played[0]["obs"].ravel().tolist() == [4.0, 5.0, 6.0, 7.0]
