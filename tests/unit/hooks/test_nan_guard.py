"""The NaN guard: whatever is not finite, the weights stay finite."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import pytest
import torch
from torch import nn

from hookloop.core import HookContext, HookManager, TrainingLoop
from hookloop.errors import NonFiniteError, RegistrationError, WorkloadError
from hookloop.hooks import NanGuardHook
from hookloop.hooks.nan_guard import WATCHED
from hookloop.rl import Trainer
from hookloop.rl.envs import make_envs
from hookloop.testing import Harness, ToyWorkload, assert_pure, assert_resumable
from tests.unit.hooks.injections import (
    HORIZON,
    NUM_ENVS,
    OPTIMIZER_STEPS_PER_EPOCH,
    STEPS_PER_EPOCH,
    BrokenEnvs,
    BrokenGradients,
    broken_trainer,
    is_healthy,
    trainer,
)

# The policy acts on what it is given before the guard sees it; numpy warns of infinities there.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")

EPOCHS = 4


class FakeCheckpoints:
    """Keeps whole runs in memory; what it has kept cannot be changed by training."""

    def __init__(self) -> None:
        self.saves: list[dict[str, Any]] = []
        self.loads = 0

    def load_latest(self) -> dict[str, Any] | None:
        self.loads += 1
        return copy.deepcopy(self.saves[-1]) if self.saves else None


class Save:
    """Saves after every epoch, in the stage of checkpoints."""

    stage = "checkpoint"

    def __init__(self, checkpoints: FakeCheckpoints) -> None:
        self._checkpoints = checkpoints

    def on_epoch_end(self, ctx: HookContext) -> None:
        assert ctx.loop is not None
        self._checkpoints.saves.append(copy.deepcopy(ctx.loop.state_dict()))


def with_checkpoints(trained: Trainer) -> FakeCheckpoints:
    checkpoints = FakeCheckpoints()
    trained.hooks.provide("checkpoints", checkpoints)
    trained.add_hook(Save(checkpoints), name="save")
    return checkpoints


@pytest.mark.parametrize("policy", ["stop", "skip", "roll-back"])
@pytest.mark.parametrize("part", WATCHED)
def test_no_weight_and_no_moment_is_ever_bad_whatever_is_broken(part: str, policy: Any) -> None:
    for seed in range(7):  # times five parts and three policies: 105 injections
        guard = NanGuardHook(policy)
        trained = broken_trainer(part, random.Random(f"{part} {seed}"), guard)
        checkpoints = with_checkpoints(trained)
        checkpoints.saves.append(copy.deepcopy(trained.state_dict()))

        try:
            trained.train(EPOCHS * STEPS_PER_EPOCH)
            acted = guard.skipped_steps + guard.skipped_epochs + guard.roll_backs
        except NonFiniteError:
            assert policy == "stop"
            acted = 1

        assert 1 <= acted <= 2, f"seed {seed}"  # an observation between two epochs is in both
        assert is_healthy(trained), f"seed {seed}"
        for saved in checkpoints.saves:
            assert all(tensor.isfinite().all() for tensor in saved["workload"]["learner"]["policy"].values())


def test_without_a_guard_the_injections_do_break_the_weights() -> None:
    trained = broken_trainer("gradients", random.Random(1))

    trained.train(EPOCHS * STEPS_PER_EPOCH)

    assert not is_healthy(trained)


def test_a_guard_that_finds_nothing_leaves_every_bit_alone() -> None:
    plain, guarded = trainer(), trainer(NanGuardHook("skip"))

    plain.train(6 * STEPS_PER_EPOCH)
    guarded.train(6 * STEPS_PER_EPOCH)

    for one, other in zip(plain.optimizer.tensors, guarded.optimizer.tensors, strict=True):
        assert torch.equal(one, other)
    assert plain.state.clocks.reading() | {"seconds": 0} == guarded.state.clocks.reading() | {"seconds": 0}


def test_stop_says_what_is_broken_and_when_and_what_to_do() -> None:
    trained = trainer(BrokenGradients("gradients", (11,), math.nan), NanGuardHook())

    with pytest.raises(NonFiniteError) as stopped:
        trained.train(EPOCHS * STEPS_PER_EPOCH)

    message = str(stopped.value)
    names = [name for name, _ in trained.policy.named_parameters()]
    assert f"the gradients of 1 of {len(names)} parameters ({names[11 % 3]})" in message
    assert "epochs=1, env_steps=128, minibatches=10, optimizer_steps=10" in message
    assert "Lower the learning rate" in message
    assert "'skip'" in message
    assert trained.state.clocks.optimizer_steps == 10


def test_stop_names_the_observations_and_rewards() -> None:
    for part, words in (("obs", "values of 'obs'"), ("rewards", "1 of 64 values of 'rewards'")):
        envs = BrokenEnvs(make_envs("CartPole-v1", NUM_ENVS, mode="sync"), part=part, at=5, value=math.inf)

        with pytest.raises(NonFiniteError, match=words):
            trainer(NanGuardHook(), envs=envs).train(EPOCHS * STEPS_PER_EPOCH)


def test_after_a_stop_a_run_without_the_cause_can_go_on() -> None:
    trained = trainer(BrokenGradients("gradients", (11,), math.nan), NanGuardHook())
    with pytest.raises(NonFiniteError):
        trained.train(EPOCHS * STEPS_PER_EPOCH)

    result = trained.train(EPOCHS * STEPS_PER_EPOCH)

    assert result.outcome == "completed"
    assert is_healthy(trained)


def test_skip_leaves_out_that_step_alone_and_reports_it() -> None:
    reported: list[dict[str, Any]] = []
    trained = trainer(BrokenGradients("gradients", (3, 5), math.inf), NanGuardHook("skip"))
    trained.add_hook(lambda ctx: reported.extend(ctx.drain_metrics()), name="report", on="epoch_end", stage="report")

    trained.train(2 * STEPS_PER_EPOCH)

    assert trained.state.clocks.minibatches == 2 * OPTIMIZER_STEPS_PER_EPOCH
    assert trained.state.clocks.optimizer_steps == 2 * OPTIMIZER_STEPS_PER_EPOCH - 2
    assert int(trained.optimizer.tensors[3]) == 2 * OPTIMIZER_STEPS_PER_EPOCH - 2
    assert [row["values"] for row in reported] == [
        {"NanGuardHook/skipped_steps": 1},
        {"NanGuardHook/skipped_steps": 2},
    ]


def test_skip_takes_no_step_in_an_epoch_with_a_bad_reward() -> None:
    envs = BrokenEnvs(make_envs("CartPole-v1", NUM_ENVS, mode="sync"), part="rewards", at=5, value=math.nan)
    guard = NanGuardHook("skip")
    trained = trainer(guard, envs=envs)

    trained.train(2 * STEPS_PER_EPOCH)

    assert trained.state.clocks.optimizer_steps == OPTIMIZER_STEPS_PER_EPOCH
    assert guard.skipped_epochs == 1
    trained.state.state_dict()  # a return that is not a number is in no statistic, so the run can be saved


@pytest.mark.parametrize("limit", [0, 2])
def test_skip_stops_after_so_many_steps_in_a_row(limit: int) -> None:
    guard = NanGuardHook("skip", max_in_a_row=limit)
    trained = trainer(BrokenGradients("gradients", tuple(range(4, 100)), math.nan), guard)

    with pytest.raises(NonFiniteError, match=f"Skipping {limit} steps in a row has not helped"):
        trained.train(EPOCHS * STEPS_PER_EPOCH)

    assert guard.skipped_steps == limit
    assert is_healthy(trained)


def test_skip_stops_after_so_many_epochs_in_a_row() -> None:
    envs = BrokenEnvs(make_envs("CartPole-v1", NUM_ENVS, mode="sync"), part="rewards", at=5, value=math.nan, times=1000)
    trained = trainer(NanGuardHook("skip", max_in_a_row=2), envs=envs)

    with pytest.raises(NonFiniteError, match="Skipping 2 epochs in a row has not helped"):
        trained.train(9 * STEPS_PER_EPOCH)

    assert trained.state.epoch == 2


def test_a_step_so_large_that_it_overflows_is_undone() -> None:
    trained = trainer(NanGuardHook(), optimizer={"learning_rate": 3e38})
    before = trained.optimizer.flat.detach().clone()

    with pytest.raises(NonFiniteError, match="where the last good ones were put back"):
        trained.train(STEPS_PER_EPOCH)

    assert torch.equal(trained.optimizer.flat, before)


def test_a_run_does_not_begin_with_bad_weights() -> None:
    trained = trainer(NanGuardHook("skip"))
    trained.optimizer.flat.data[0] = math.nan

    with pytest.raises(NonFiniteError, match="The run begins with numbers that are not finite: 1 of"):
        trained.train(STEPS_PER_EPOCH)


def test_roll_back_goes_to_the_latest_checkpoint_and_on_with_other_random_numbers() -> None:
    guard = NanGuardHook("roll-back")
    trained = trainer(BrokenGradients("gradients", (OPTIMIZER_STEPS_PER_EPOCH * 2 + 3,), math.nan), guard)
    checkpoints = with_checkpoints(trained)

    trained.train(EPOCHS * STEPS_PER_EPOCH)

    epochs = [saved["state"]["clocks"]["epochs"] for saved in checkpoints.saves]
    assert epochs == [1, 2, 2, 3, 4]  # epoch 3 was broken; the second save of epoch 2 is after the roll-back
    kept, rolled_back = (save["workload"] for save in checkpoints.saves[1:3])
    for name, weights in kept["learner"]["policy"].items():
        assert torch.equal(weights, rolled_back["learner"]["policy"][name])
    assert not torch.equal(kept["collector"]["generator"], rolled_back["collector"]["generator"])
    assert not torch.equal(kept["learner"]["generator"], rolled_back["learner"]["generator"])
    assert guard.roll_backs == 1
    assert trained.state.attempt == 1
    assert trained.state.clocks.optimizer_steps == EPOCHS * OPTIMIZER_STEPS_PER_EPOCH


def test_the_count_of_roll_backs_is_saved() -> None:
    trained = trainer(BrokenGradients("gradients", (12,), math.nan), NanGuardHook("roll-back"))
    checkpoints = with_checkpoints(trained)
    trained.train(3 * STEPS_PER_EPOCH)
    guard = NanGuardHook("roll-back")
    resumed = trainer(BrokenGradients("gradients", (), math.nan), guard)
    with_checkpoints(resumed)

    resumed.load_state_dict(checkpoints.saves[-1])

    assert (guard.roll_backs, guard.rolled_back_to) == (1, 1)


def test_roll_back_stops_when_it_does_not_help() -> None:
    guard = NanGuardHook("roll-back", max_in_a_row=2)
    trained = trainer(BrokenGradients("gradients", tuple(range(12, 1000)), math.nan), guard)
    checkpoints = with_checkpoints(trained)

    with pytest.raises(NonFiniteError, match="Rolling back to epoch 1 2 times has not helped"):
        trained.train(EPOCHS * STEPS_PER_EPOCH)

    assert guard.roll_backs == 2
    assert checkpoints.loads == 3
    assert is_healthy(trained)


@pytest.mark.parametrize(("has_service", "words"), [(False, "no service 'checkpoints'"), (True, "no checkpoint to")])
def test_roll_back_without_a_checkpoint_stops(has_service: bool, words: str) -> None:
    trained = trainer(BrokenGradients("gradients", (3,), math.nan), NanGuardHook("roll-back"))
    if has_service:
        trained.hooks.provide("checkpoints", FakeCheckpoints())

    with pytest.raises(NonFiniteError, match=words):
        trained.train(EPOCHS * STEPS_PER_EPOCH)

    assert is_healthy(trained)


def test_a_roll_back_does_not_undo_a_request_to_stop() -> None:
    trained = trainer(BrokenGradients("gradients", (12,), math.nan), NanGuardHook("roll-back"))
    with_checkpoints(trained)
    trained.add_hook(lambda ctx: ctx.request_stop("enough"), on="train_phase_end", schedule="at 1 epochs")

    result = trained.train(EPOCHS * STEPS_PER_EPOCH)

    assert result.outcome == "stopped"
    assert result.epochs == 1


def test_a_run_resumed_after_skips_equals_one_that_was_not_interrupted() -> None:
    def make(checkpoints: FakeCheckpoints) -> tuple[Trainer, NanGuardHook]:
        guard = NanGuardHook("skip")
        trained = trainer(SpoilsBySteps((3, 4, 12, 13, 30)), guard)
        trained.add_hook(Save(checkpoints), name="save")
        return trained, guard

    checkpoints = FakeCheckpoints()
    whole, guard = make(checkpoints)
    whole.train(6 * STEPS_PER_EPOCH)
    assert guard.skipped_steps == 5
    for saved in list(checkpoints.saves[:-1]):
        resumed, resumed_guard = make(FakeCheckpoints())
        resumed.load_state_dict(saved)
        resumed.train(6 * STEPS_PER_EPOCH)

        assert torch.equal(resumed.optimizer.flat, whole.optimizer.flat)
        assert {name: getattr(resumed_guard, name) for name in guard.saved} == {
            name: getattr(guard, name) for name in guard.saved
        }


class SpoilsBySteps:
    """Spoils gradients by a count that is saved, so that a resumed run meets the same ones."""

    def __init__(self, at: tuple[int, ...]) -> None:
        self.calls = 0
        self._at = at

    def on_gradients(self, ctx: HookContext) -> None:
        self.calls += 1
        if self.calls in self._at:
            ctx.optimizer.gradients[0] = math.nan


def test_the_guard_is_pure_and_resumes_where_there_is_no_torch_model() -> None:
    assert_resumable(NanGuardHook("skip"))
    assert_pure(NanGuardHook())


def test_a_plain_loss_that_is_not_finite_skips_the_step_of_any_workload() -> None:
    loop = TrainingLoop(ToyWorkload(2), [NanGuardHook("skip")], watch_signals=False)
    loop.workload.slope = math.inf  # type: ignore[attr-defined]  # the toy's own

    with pytest.raises(NonFiniteError, match=r"the loss \((inf|nan)\)"):
        loop.run()

    assert loop.clocks.optimizer_steps == 0


def test_a_workload_that_steps_all_the_same_is_told_so() -> None:
    class Deaf(ToyWorkload):
        def run_epoch(self, loop: TrainingLoop) -> None:
            loop.gradients(math.nan)
            loop.optimizer_step()

    with pytest.raises(WorkloadError, match="a hook had asked to leave out"):
        TrainingLoop(Deaf(1), [NanGuardHook("skip")], watch_signals=False).run()


# A torch model and optimizer of any kind


def network(num_layers: int = 2) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(num_layers)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model(torch.ones(2, 3)).sum().backward()
    return model, optimizer


@pytest.mark.parametrize("num_layers", [1, 2, 6])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_the_gradients_of_any_torch_model_are_looked_at(value: float, num_layers: int) -> None:
    model, optimizer = network(num_layers)
    harness = Harness(NanGuardHook("skip"))
    harness.context.model, harness.context.optimizer = model, optimizer
    harness.start()

    harness.minibatch()
    assert harness.state.clocks.optimizer_steps == 1
    next(iter(model.parameters())).grad[1, 1] = value  # type: ignore[index]  # backward has filled it
    harness.minibatch()

    assert harness.state.clocks.optimizer_steps == 1
    assert harness.metrics == {"NanGuardHook/skipped_steps": 1}


def test_the_message_names_five_parameters_and_counts_them_all() -> None:
    model, optimizer = network(4)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, math.nan)
    harness = Harness(NanGuardHook())
    harness.context.model, harness.context.optimizer = model, optimizer

    with pytest.raises(
        NonFiniteError, match=r"8 of 8 parameters \(0.weight, 0.bias, 1.weight, 1.bias, 2.weight, \.\.\.\)"
    ):
        harness.minibatch()


@pytest.mark.parametrize("what", ["parameter", "moment"])
def test_weights_and_moments_of_any_torch_optimizer_are_put_back(what: str) -> None:
    model, optimizer = network()
    harness = Harness(NanGuardHook("skip"))
    harness.context.model, harness.context.optimizer = model, optimizer
    harness.start()
    optimizer.step()
    harness.fire("train_phase_end")
    good = copy.deepcopy((model.state_dict(), optimizer.state_dict()))

    optimizer.step()
    spoilt = next(iter(model.parameters()))
    (spoilt.data if what == "parameter" else optimizer.state[spoilt]["exp_avg_sq"]).fill_(math.inf)
    harness.fire("train_phase_end")

    assert harness.metrics == {"NanGuardHook/skipped_epochs": 1}
    for name, weights in model.state_dict().items():
        assert torch.equal(weights, good[0][name])
    for index, memory in optimizer.state_dict()["state"].items():
        assert torch.equal(memory["exp_avg_sq"], good[1]["state"][index]["exp_avg_sq"])


def test_finite_numbers_whose_sum_overflows_are_no_fault() -> None:
    model, optimizer = network()
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 3e38)
    harness = Harness(NanGuardHook())
    harness.context.model, harness.context.optimizer = model, optimizer

    harness.minibatch(loss=1.0)

    assert harness.state.clocks.optimizer_steps == 1


def test_only_what_is_watched_is_looked_at() -> None:
    envs = BrokenEnvs(make_envs("CartPole-v1", NUM_ENVS, mode="sync"), part="rewards", at=5, value=math.nan)
    guard = NanGuardHook("skip", watch=["gradients"], max_in_a_row=1000)
    trained = trainer(guard, envs=envs)

    trained.train(2 * STEPS_PER_EPOCH)

    assert guard.skipped_epochs == 0
    assert guard.skipped_steps > 0  # of the epoch whose advantages are made of that reward
    assert is_healthy(trained)


def test_an_observation_after_the_last_one_stored_costs_its_epoch_and_the_next() -> None:
    envs = BrokenEnvs(make_envs("CartPole-v1", NUM_ENVS, mode="sync"), part="obs", at=HORIZON, value=math.nan)
    guard = NanGuardHook("skip")
    trained = trainer(guard, envs=envs)

    trained.train(EPOCHS * STEPS_PER_EPOCH)

    assert (guard.skipped_epochs, guard.skipped_steps) == (2, 0)
    assert guard.skipped_epochs_in_a_row == 0
    assert trained.state.clocks.optimizer_steps == (EPOCHS - 2) * OPTIMIZER_STEPS_PER_EPOCH


def test_a_memory_that_is_not_finite_ends_with_its_episode() -> None:
    envs = BrokenEnvs(make_envs("CartPole-v1", NUM_ENVS, mode="sync"), part="obs", at=HORIZON // 2, value=math.nan)
    from hookloop.rl import PPO, TrainerConfig
    from hookloop.rl.policies import make_policy

    policy = make_policy(envs.observation, envs.action, hidden=(8,), memory="gru", seed=3)
    config = TrainerConfig(horizon=256, num_minibatches=4, update_epochs=1, segment_length=16)
    guard = NanGuardHook("skip")
    trained = Trainer(policy=policy, envs=envs, losses=[PPO()], config=config, hooks=[guard], seed=1)

    trained.train(3 * 256 * NUM_ENVS)

    assert guard.skipped_epochs == 1
    assert guard.skipped_steps == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"policy": "ignore"}, "'stop', 'skip' or 'roll-back', got 'ignore'"),
        ({"watch": ("losses",)}, "Did you mean 'loss'"),
        ({"max_in_a_row": -1}, "at least 0, got -1"),
    ],
)
def test_arguments_without_meaning_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        NanGuardHook(**arguments)


def test_the_guard_runs_last_before_reports_and_checkpoints() -> None:
    hooks = HookManager()
    hooks.add(NanGuardHook())
    hooks.add(Save(FakeCheckpoints()), name="save")
    hooks.add(lambda ctx: None, name="clip", on="gradients")
    hooks.add(lambda ctx: None, name="report", on="epoch_end", stage="report")

    assert hooks.order() == ["clip", "NanGuardHook", "report", "save"]
