"""The promises of runs on sequences: they resume bit for bit, observers change nothing, and they learn."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from hookloop.curriculum import CurriculumConfig, Lesson, LessonEnv
from hookloop.evaluation.tasks import Wanted
from hookloop.hooks import create_default_evaluation_hooks
from hookloop.pools import InlinePool, MakePerformer, Task, WorkerPool
from hookloop.recipes.sequences import arithmetic
from hookloop.rl.config import OptimizerConfig
from hookloop.sequences import GRPOConfig, SequenceConfig, SequenceTrainerConfig, build_trainer
from hookloop.sequences.config import RLOOConfig
from hookloop.supervised.config import GPTConfig
from tests.behaviour.sequence_runs import ending, settings

EPOCHS = 6


def stop_after(epochs: int) -> Any:
    def stop(ctx: Any) -> None:
        if ctx.state.clocks.epochs >= epochs:
            ctx.request_stop("enough")

    return stop


def test_a_run_resumes_bit_for_bit() -> None:
    saves: dict[int, Any] = {}

    def trainer_with(save: Any) -> Any:
        made = build_trainer(settings(), hooks=create_default_evaluation_hooks(settings().curriculum), seed=3)
        made.add_hook(save, name="save", on="epoch_end", stage="checkpoint")
        made.add_hook(stop_after(EPOCHS), name="stop", on="epoch_end")
        return made

    whole = trainer_with(lambda ctx: saves.update({ctx.state.epoch: copy.deepcopy(whole.state_dict())}))
    whole.train(10**9)

    for epoch in (1, 3, 4):
        resumed = trainer_with(lambda ctx: None)
        resumed.load_state_dict(saves[epoch])
        resumed.train(10**9)

        assert ending(resumed) == ending(whole)
        assert all(
            torch.equal(tensor, whole.workload.learner.reference.state_dict()[name])
            for name, tensor in resumed.workload.learner.reference.state_dict().items()
        )


class Backwards(InlinePool):
    """A pool that computes the newest task first."""

    def submit(self, task: Task) -> None:
        super().submit(task)
        self._waiting.rotate(1)


def trained(open_pool: Any = None, hooks: list[object] | None = None, workers: int = 0) -> dict[str, Any]:
    config = settings().model_copy(update={"workers": workers})
    trainer = build_trainer(config, open_pool=open_pool, hooks=hooks or [], seed=5)
    trainer.add_hook(stop_after(4), name="stop", on="epoch_end")
    trainer.train(10**9)
    return ending(trainer)


def test_the_order_in_which_slots_are_computed_changes_nothing() -> None:
    assert trained(Backwards) == trained()


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_workers_gives_the_same_bits(workers: int) -> None:
    assert trained(workers=workers) == trained()


def test_observers_change_nothing() -> None:
    seen: list[str] = []

    class Observer:
        on_error = "warn"

        def on_rollout_end(self, ctx: Any) -> None:
            torch.rand(3)
            ctx.rng.random()

        def on_minibatch_end(self, ctx: Any) -> None:
            seen.append(type(ctx.batch).__name__)

        def on_epoch_end(self, ctx: Any) -> None:
            ctx.trainer.player()

    evaluation = create_default_evaluation_hooks({"micro_eval_frequency": 1, "eval_frequency": None})

    assert trained(hooks=[Observer(), *evaluation]) == trained()
    assert set(seen) == {"SequenceMinibatch"}


def test_the_pool_is_closed_whatever_happens() -> None:
    pools: list[InlinePool] = []

    def open_pool(make: MakePerformer) -> WorkerPool:
        pools.append(InlinePool(make))
        return pools[-1]

    def fail() -> None:
        raise RuntimeError("broken")

    trainer = build_trainer(settings(), open_pool=open_pool, seed=5)
    trainer.add_hook(fail, name="fail", on="rollout_end")
    with pytest.raises(RuntimeError, match="broken"):
        trainer.train(10**9)

    assert [pool._is_closed for pool in pools] == [True]


def test_clocks_count_symbols_and_completions() -> None:
    trainer = build_trainer(settings(), seed=5)
    trainer.add_hook(stop_after(2), name="stop", on="epoch_end")
    result = trainer.train(10**9)

    assert result.episodes == 2 * 3 * 4 * 4
    assert result.episodes <= result.env_steps <= 3 * result.episodes, "one to three symbols each, the end included"
    assert sum(trainer.state.rollout_stats["length"]) < result.env_steps


def test_a_run_is_finished_when_enough_symbols_are_drawn() -> None:
    result = build_trainer(settings(), seed=5).train(200)

    assert result.outcome == "completed"
    assert 200 <= result.env_steps < 400


def test_a_full_evaluation_tells_the_curriculum_and_a_small_one_does_not() -> None:
    hooks = create_default_evaluation_hooks(
        {"micro_eval_frequency": 1, "micro_eval_n_examples": 3, "eval_frequency": 2, "eval_n_examples": 5}
    )
    trainer = build_trainer(settings(), hooks=hooks, seed=5)
    told: list[tuple[int, float | None]] = []
    trainer.add_hook(
        lambda ctx: told.append((ctx.state.epoch, trainer.curriculum.evaluated_success("copy"))),
        name="look", on="epoch_end", stage="report",
    )  # fmt: skip
    trainer.add_hook(stop_after(2), name="stop", on="epoch_end")
    trainer.train(10**9)

    micro, full = hooks
    assert [success is None for _, success in told] == [True, False]
    assert set(micro.result.scores) == {("lesson", trainer.loop.context.lesson_id)} if micro.result else False
    assert full.result is not None
    assert {name for _, name in full.result.scores} == {"copy", "reverse"}
    scores = full.get_eval_scores()
    assert {"success_rate", "avg_reward", "total_count", "pass@1", "pass@4", "copy/pass@4"} <= set(scores)
    assert scores["copy/total_count"] == 5
    assert all(set(score.sample) == {"prompt", "response"} for score in full.result.scores.values())


@pytest.mark.parametrize("loss", [GRPOConfig(), RLOOConfig()], ids=["grpo", "rloo"])
def test_copying_is_learned_from_rewards_alone_within_seconds(loss: Any) -> None:
    config = SequenceConfig(
        curriculum=CurriculumConfig(
            lessons={"copy": Lesson(env=LessonEnv(kwargs={"longest": 2, "alphabet": "abc"}))}, slots=2
        ),
        model=GPTConfig(layers=1, heads=2, width=32),
        losses={"loss": loss},
        trainer=SequenceTrainerConfig(
            prompts_per_slot=8, group_size=16, minibatch_groups=8,
            optimizer=OptimizerConfig(learning_rate=3e-3, max_grad_norm=1.0),
        ),
    )  # fmt: skip
    evaluation = create_default_evaluation_hooks(
        {"micro_eval_frequency": None, "eval_frequency": 1000, "eval_n_examples": 100}
    )[0]
    trainer = build_trainer(config, hooks=[evaluation], seed=0)

    first = trainer.player()
    trainer.train(60_000)

    assert evaluation.result is not None
    before = first.play(config.curriculum.lessons["copy"].env, Wanted(episodes=100, seed=7))
    assert before.measures["avg_reward"] < 0.2
    assert evaluation.result.averages["success_rate"] > 0.8, "from scratch, with the likeliest answers"


def sums(largest: int, total: int) -> float:
    """Return the share of right sums after training the recipe on one lesson for so many symbols."""
    lessons = {"sums": Lesson(env=LessonEnv(id="arithmetic", kwargs={"largest": largest}))}
    recipe = arithmetic()
    config = recipe.model_copy(update={"curriculum": recipe.curriculum.model_copy(update={"lessons": lessons})})
    trainer = build_trainer(config, seed=0)
    trainer.train(total)
    return trainer.player().play(lessons["sums"].env, Wanted(episodes=200, seed=7)).measures["avg_reward"]


def test_small_sums_are_learned_by_answers_and_rewards() -> None:
    assert sums(4, 60_000) > 0.85


@pytest.mark.faults
def test_sums_of_single_digits_are_learned_by_answers_and_rewards() -> None:
    assert sums(9, 500_000) > 0.9
