"""The main loop of a trainer that owns everything else: steps, updates, display, callbacks, and one end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from hookloop.core import HookContext, LoopResult, TrainingLoop
from hookloop.errors import WorkloadError

Live = Any
Log = Callable[[str], object]


class Display(Protocol):
    """What shows progress."""

    def get_context_manager(self) -> AbstractContextManager[object]:
        """Return what surrounds the whole training."""
        ...

    def update_progress(
        self, *, current_step: int, total_steps: int, completed_episodes: int, **updates: Any
    ) -> bool | None:
        """Show progress; False if it was not the time to."""
        ...


class TrainingLoopManager:
    """Runs a trainer's steps until ``config.training.total_timesteps`` over the core's loop, which owns the counter.

    The trainer brings ``_execute_training_step_delegated(episode_state)``, ``_perform_ppo_update(obs, logger)``,
    ``_finalize_training(logger)``, ``session_manager``, ``experience_buffer`` with its ``ptr``,
    ``pending_progress_updates`` and ``total_episodes_completed``. Its ``global_timestep`` is read once, at the
    start, and told after each step. A step that failed (``step_manager.consecutive_failures`` is above 0) is not
    counted. The policy is updated whenever the buffer is full, and once more at the end for what is left.

    Args:
        trainer: What trains.
        config: Its settings; ``training.total_timesteps`` and ``training.steps_per_epoch`` are read.
        step_manager: What makes the steps; it tells whether the last one failed.
        training_display: What shows progress.
        callbacks_list: Hooks in any dialect, such as objects with ``on_step_end(trainer)``.
        logger_func: Is told, in words, how the loop begins and ends.
    """

    def __init__(
        self,
        trainer: Live,
        config: Live,
        step_manager: Live,
        training_display: Display,
        callbacks_list: Sequence[object],
        logger_func: Log,
    ) -> None:
        self.trainer, self.config, self.step_manager = trainer, config, step_manager
        self.training_display, self.logger = training_display, logger_func
        self.loop = TrainingLoop(_Windows(self), list(callbacks_list), context=HookContext(trainer=trainer))
        self.loop.clocks.env_steps = trainer.global_timestep

    @property
    def global_timestep(self) -> int:
        """Completed steps."""
        return self.loop.clocks.env_steps

    @property
    def outcome(self) -> str | None:
        """How the loop ended: completed, stopped, interrupted or failed; None before."""
        return self.loop.context.outcome

    def run(self) -> LoopResult | None:
        """Train to the end and finalise once, however it ended; None if a KeyboardInterrupt ended it."""
        self.logger(f"The training loop starts at timestep {self.global_timestep}.")
        try:
            with self.training_display.get_context_manager():
                return self.loop.run()
        except KeyboardInterrupt:
            self.logger("The training loop was interrupted.")
            return None
        except BaseException as error:
            self.logger(f"The training loop failed: {error}")
            raise
        finally:
            self.logger(f"The training loop ends at timestep {self.global_timestep}: {self.outcome}.")
            try:
                self.trainer._finalize_training(self.logger)
            finally:
                self.trainer.session_manager.finalize_session()

    def show_progress(self) -> None:
        """Hand what is pending to the display; it stays pending until it has been shown."""
        pending = self.trainer.pending_progress_updates
        if not pending:
            return
        is_shown = self.training_display.update_progress(
            current_step=self.global_timestep,
            total_steps=self.config.training.total_timesteps,
            completed_episodes=self.trainer.total_episodes_completed,
            **pending,
        )
        if is_shown is not False:
            pending.clear()


class _Windows:
    """The trainer as a workload: an epoch is one window of steps and the update that follows it."""

    def __init__(self, manager: TrainingLoopManager) -> None:
        self.manager = manager

    def is_finished(self, loop: TrainingLoop) -> bool:
        return loop.clocks.env_steps >= self.manager.config.training.total_timesteps

    def run_epoch(self, loop: TrainingLoop) -> None:
        trainer, training = self.manager.trainer, self.manager.config.training
        buffer = trainer.experience_buffer
        with loop.rollout():
            # Full, and nothing else: a failed step or a resume in mid-window shifts no update.
            while buffer.ptr < training.steps_per_epoch and not self.is_finished(loop):
                self._step(loop)
        with loop.train_phase():
            if buffer.ptr:
                trainer._perform_ppo_update(trainer.current_episode_state.current_obs, self.manager.logger)
        if buffer.ptr:
            raise WorkloadError(
                f"_perform_ppo_update left {buffer.ptr} steps in the experience buffer; it must empty the buffer."
            )

    def _step(self, loop: TrainingLoop) -> None:
        manager, trainer = self.manager, self.manager.trainer
        episodes = trainer.total_episodes_completed
        trainer.current_episode_state = trainer._execute_training_step_delegated(trainer.current_episode_state)
        if manager.step_manager.consecutive_failures:
            return
        trainer.global_timestep = loop.clocks.env_steps + 1
        loop.step(env_steps=1, episodes=trainer.total_episodes_completed - episodes)
        manager.show_progress()

    def state_dict(self) -> dict[str, Live]:
        return {}

    def load_state_dict(self, saved: Mapping[str, Live]) -> None:
        """Nothing of a trainer of one's own is known here; it saves what it is made of itself."""
