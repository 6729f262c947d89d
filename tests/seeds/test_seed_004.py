"""Seed 004: callbacks ``on_step_end(trainer)``, a stop signal from a callback, one end in every case."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console

from hookloop.core import TrainingLoop
from hookloop.display import TrainingDisplay
from hookloop.rl.losses import PPO
from hookloop.rl.losses.base import SharedLossData
from hookloop.rl.optimizer import FlatAdam
from hookloop.rl.sampling import Minibatch
from hookloop.selfplay.advantages import estimate_signed_advantages, signs_of
from hookloop.selfplay.step_manager import Transition
from hookloop.testing import ToyWorkload


class Trainer:
    """The seed's trainer, as far as callbacks look at it; the loop owns the only counter."""

    def __init__(self, callbacks, epochs=3):
        self.loop = TrainingLoop(ToyWorkload(epochs, steps_per_epoch=4, num_envs=1), callbacks)
        self.loop.context.trainer = self
        self.finalized = 0
        self.loop.hooks.add(self._finalize_training, on="training_end")

    @property
    def global_timestep(self) -> int:
        return self.loop.clocks.env_steps

    def _finalize_training(self) -> None:
        self.finalized += 1

    def run_training_loop(self):
        return self.loop.run()


class CheckpointCallback:
    def __init__(self, interval):
        self.interval = interval
        self.saved = []

    def on_step_end(self, trainer):
        if trainer.global_timestep % self.interval == 0:
            self.saved.append(trainer.global_timestep)


def test_step_callbacks_are_given_the_trainer_after_each_step() -> None:
    callback = CheckpointCallback(interval=5)

    Trainer([callback]).run_training_loop()

    assert callback.saved == [5, 10]


def test_a_callback_can_ask_to_stop_and_says_why() -> None:
    class StopAt:
        def on_step_end(self, trainer, ctx):
            if trainer.global_timestep >= 6:
                ctx.request_stop("rating reached")

    trainer = Trainer([StopAt()])

    result = trainer.run_training_loop()

    assert result.outcome == "stopped"
    assert result.stop is not None
    assert (result.stop.by, result.stop.reason, result.stop.env_steps) == ("StopAt", "rating reached", 6)
    assert trainer.global_timestep == 8  # the epoch under way is finished first
    assert trainer.finalized == 1


@pytest.mark.parametrize("error", [RuntimeError("engine died"), KeyboardInterrupt()])
def test_an_error_or_interrupt_in_a_callback_finalises_once_and_is_raised(error: BaseException) -> None:
    class Broken:
        def on_step_end(self, trainer):
            raise error

    trainer = Trainer([Broken()])

    with pytest.raises(type(error)):
        trainer.run_training_loop()

    assert trainer.finalized == 1


def test_pending_progress_updates_are_handed_to_the_display_and_cleared_when_it_has_taken_them() -> None:
    output = io.StringIO()
    display = TrainingDisplay(console=Console(file=output, width=100, height=20), throttle_seconds=3600)

    class UpdateDisplay:
        def on_step_end(self, trainer, ctx):
            pending = ctx.state.pending_progress_updates
            pending["winner"] = f"black at {trainer.global_timestep}"
            is_shown = display.update_progress(
                current_step=trainer.global_timestep, total_steps=12, completed_episodes=0, **pending
            )
            if is_shown:
                pending.clear()
            assert is_shown == (trainer.global_timestep in (1, 12)), "the first and the last, the throttle is an hour"

    trainer = Trainer([UpdateDisplay()])
    with display.get_context_manager():
        trainer.run_training_loop()

    assert trainer.loop.state.pending_progress_updates == {}
    assert "12 of 12 steps" in output.getvalue()
    assert "winner black at 12" in output.getvalue()


class ExperienceBuffer:
    def __init__(self):
        self.transitions = []

    @property
    def ptr(self) -> int:
        return len(self.transitions)

    def add(self, transition) -> None:
        self.transitions.append(transition)

    def cut_off(self) -> None:
        """End the game of the last move: what follows is another one."""
        if self.transitions:
            self.transitions[-1] = self.transitions[-1]._replace(done=True)

    def clear(self) -> None:
        self.transitions.clear()

    def minibatch(self, first_last_value):
        """Return all moves as rows to learn from, with the advantages of who made them."""
        columns = zip(Transition._fields, zip(*self.transitions, strict=True), strict=True)
        kept = {name: np.stack(values) for name, values in columns}
        rewards, values = (kept[name].astype(np.float32)[:, None] for name in ("reward", "value"))
        advantages, nothing = np.empty_like(rewards), np.zeros_like(rewards)
        estimate_signed_advantages(
            rewards, values, first_last_value, kept["done"][:, None], nothing, signs_of(kept["seat"])[:, None],
            gamma=0.99, gae_lambda=0.95, out_TN=advantages,
        )  # fmt: skip
        kept |= {"value": values[:, 0], "advantage": advantages[:, 0], "returns": (advantages + values)[:, 0]}
        rows = {name: torch.from_numpy(column) for name, column in kept.items()}
        return Minibatch(
            obs=rows["obs"], actions=rows["action"], log_probs=rows["log_prob"].float(), values=rows["value"],
            advantages=rows["advantage"], returns=rows["returns"], masks=rows["mask"],
        )  # fmt: skip


class SessionManager:
    def __init__(self):
        self.finalized = 0

    def finalize_session(self) -> None:
        self.finalized += 1


class SeedTrainer:
    """The trainer of the seed, line by line as far as it is written out there, over a real game."""

    def __init__(self, callbacks, total_timesteps=50, steps_per_epoch=16, start=0, max_failures=3):
        from hookloop.selfplay import GameEnvs, NetworkConfig, StepManager, TrainingLoopManager, build_policy

        training = SimpleNamespace(total_timesteps=total_timesteps, steps_per_epoch=steps_per_epoch)
        self.config = SimpleNamespace(training=training)
        self.game = GameEnvs("tic_tac_toe", 1)
        self.experience_buffer = ExperienceBuffer()
        self.policy = policy = build_policy(NetworkConfig(kind="layers", hidden=(8,)), self.game)
        self.ppo, self.optimizer, self.losses = PPO(), FlatAdam(policy, learning_rate=1e-2), []
        self.step_manager = StepManager(
            self.game, policy, self.experience_buffer, max_consecutive_failures=max_failures
        )
        self.output = io.StringIO()
        self.display = TrainingDisplay(console=Console(file=self.output, width=100, height=20), throttle_seconds=0)
        self.session_manager = SessionManager()
        self.global_timestep, self.total_episodes_completed = start, 0
        self.black_wins = self.white_wins = self.draws = 0
        self.pending_progress_updates, self.lines = {}, []
        self.windows, self.final_models, self.finalized = [], 0, 0
        self.current_episode_state = None
        self.training_loop_manager = TrainingLoopManager(
            trainer=self,
            config=self.config,
            step_manager=self.step_manager,
            training_display=self.display,
            callbacks_list=callbacks,
            logger_func=self.lines.append,
        )

    def _execute_training_step_delegated(self, episode_state):
        step_result = self.step_manager.execute_step(
            episode_state=episode_state, global_timestep=self.global_timestep, logger_func=self.lines.append
        )
        if not step_result.success:
            self.experience_buffer.cut_off()
            return self.step_manager.reset_episode()
        updated = self.step_manager.update_episode_state(episode_state, step_result)
        if step_result.done:
            winner = step_result.info.get("winner")
            if winner == "black":
                self.black_wins += 1
            elif winner == "white":
                self.white_wins += 1
            else:
                self.draws += 1
            stats = {"black_wins": self.black_wins, "white_wins": self.white_wins, "draws": self.draws}
            updated = self.step_manager.handle_episode_end(
                updated, step_result, stats, self.total_episodes_completed, self.lines.append
            )
            self.total_episodes_completed += 1
            self.pending_progress_updates |= stats
        return updated

    def _perform_ppo_update(self, current_obs, logger_func) -> None:
        last_value = self.policy.value(torch.from_numpy(current_obs[None])).numpy() * signs_of(self.game.seats)
        rows = self.experience_buffer.minibatch(last_value)
        losses = [self._pass_over(rows) for _ in range(4)]
        self.losses.append((losses[0], losses[-1]))
        self.windows.append(self.experience_buffer.ptr)
        self.experience_buffer.clear()

    def _pass_over(self, rows) -> float:
        loss = self.ppo.run_train(SharedLossData(self.policy, rows), self.training_loop_manager.loop.state)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.clip()
        self.optimizer.step()
        return loss.item()

    def _finalize_training(self, logger_func) -> None:
        self.finalized += 1
        self.final_models += self.training_loop_manager.outcome == "completed"

    def run_training_loop(self):
        self.current_episode_state = self.step_manager.reset_episode()
        return self.training_loop_manager.run()


def seed_trainer(*callbacks, **options) -> SeedTrainer:
    pytest.importorskip("pyspiel", reason="OpenSpiel, the extra 'games', is not installed")
    return SeedTrainer(list(callbacks), **options)


def test_the_seeds_classes_train_a_game_to_the_end_and_the_last_window_too() -> None:
    callback = CheckpointCallback(interval=10)
    trainer = seed_trainer(callback)

    result = trainer.run_training_loop()

    assert result.outcome == "completed"
    assert trainer.global_timestep == trainer.training_loop_manager.global_timestep == 50
    assert trainer.windows == [16, 16, 16, 2], "the last partial window is trained"
    assert all(last < first for first, last in trainer.losses), "each window is learned from"
    assert callback.saved == [10, 20, 30, 40, 50]
    games = trainer.black_wins + trainer.white_wins + trainer.draws
    assert games == trainer.total_episodes_completed == trainer.game.tally.games > 4
    assert (trainer.finalized, trainer.session_manager.finalized, trainer.final_models) == (1, 1, 1)
    assert trainer.pending_progress_updates == {}
    assert "of 50 steps" in trainer.output.getvalue()


def test_a_failed_step_in_mid_window_costs_its_game_and_no_update() -> None:
    trainer = seed_trainer()
    act, calls = trainer.step_manager.policy.act, []

    def failing(*args, **kwargs):
        calls.append(None)
        if len(calls) in (5, 6):
            raise RuntimeError("engine hiccup")
        return act(*args, **kwargs)

    trainer.step_manager.policy.act = failing
    trainer.run_training_loop()

    assert len(calls) == 52
    assert trainer.global_timestep == 50
    assert trainer.windows == [16, 16, 16, 2]
    assert sum("engine hiccup" in line for line in trainer.lines) == 2
    games = trainer.black_wins + trainer.white_wins + trainer.draws
    assert games == trainer.total_episodes_completed == trainer.game.tally.games, "what was abandoned is not counted"


def test_too_many_failed_steps_in_a_row_end_the_run_without_a_final_model() -> None:
    trainer = seed_trainer(max_failures=3)

    def failing(*args, **kwargs):
        raise RuntimeError("engine died")

    trainer.step_manager.policy.act = failing
    with pytest.raises(RuntimeError, match="4 steps failed one after the other"):
        trainer.run_training_loop()

    assert (trainer.finalized, trainer.session_manager.finalized, trainer.final_models) == (1, 1, 0)


def test_a_resume_in_mid_window_goes_on_counting_and_updates_when_the_buffer_is_full() -> None:
    trainer = seed_trainer(start=7)

    trainer.run_training_loop()

    assert trainer.windows == [16, 16, 11]
    assert trainer.global_timestep == 50


def test_an_interrupt_is_told_and_finalised_once_and_not_raised() -> None:
    class Interrupting:
        def on_step_end(self, trainer):
            if trainer.global_timestep == 20:
                raise KeyboardInterrupt

    trainer = seed_trainer(Interrupting())

    assert trainer.run_training_loop() is None
    assert trainer.training_loop_manager.outcome == "interrupted"
    assert (trainer.finalized, trainer.session_manager.finalized, trainer.final_models) == (1, 1, 0)
    assert "The training loop was interrupted." in trainer.lines
