"""A guard against NaN and infinity: no step is taken along them, and no weight becomes one."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol, get_args

from hookloop.core import HookContext, derive_seed
from hookloop.errors import NonFiniteError, RegistrationError, UnknownNameError
from hookloop.hooks import finite

log = logging.getLogger("hookloop.hooks.nan_guard")

Policy = Literal["stop", "skip", "roll-back"]
WATCHED = ("loss", "gradients", "parameters", "observations", "rewards")
CHECKPOINTS = "checkpoints"
_CLOCKS = ("epochs", "env_steps", "minibatches", "optimizer_steps")


class Checkpoints(Protocol):
    """The service ``checkpoints``, as far as a roll-back needs it."""

    def load_latest(self) -> dict[str, Any] | None:
        """Return what ``TrainingLoop.state_dict`` had returned for the newest checkpoint; None if there is none."""
        ...


class NanGuardHook:
    """Keep NaN and infinity out of the weights: stop, skip, or roll back.

    Args:
        policy: ``stop`` raises NonFiniteError before the step is taken. ``skip`` leaves the step out, or the whole
            optimisation of an epoch whose data or weights are broken. ``roll-back`` takes no more steps in this
            epoch and goes back to the latest checkpoint at its end, then on with other random numbers.
        watch: What to look at. ``parameters`` keeps a copy of the weights and of the optimizer's memory.
        max_in_a_row: How often to skip in a row, or to roll back to the same place, before it stops after all.
    """

    ranks = "all"
    on_error = "raise"
    priority = -1000  # last of its stage: it judges what the other hooks have made of gradients and data
    saved = ("skipped_steps", "skipped_steps_in_a_row", "skipped_epochs", "skipped_epochs_in_a_row", "is_epoch_lost",
             "roll_backs", "roll_backs_in_a_row", "rolled_back_to", "roll_back_reason")  # fmt: skip

    def __init__(self, policy: Policy = "stop", watch: Sequence[str] = WATCHED, max_in_a_row: int = 3) -> None:
        if policy not in get_args(Policy):
            raise RegistrationError(f"A NaN guard's policy is 'stop', 'skip' or 'roll-back', got {policy!r}.")
        for name in [watch] if isinstance(watch, str) else watch:
            if name not in WATCHED:
                raise UnknownNameError("number to watch called", name, WATCHED, where="for a NaN guard")
        if isinstance(max_in_a_row, bool) or not isinstance(max_in_a_row, int) or max_in_a_row < 0:
            raise RegistrationError(f"max_in_a_row must be a whole number, at least 0, got {max_in_a_row!r}.")
        self.policy = policy
        self.watch = (watch,) if isinstance(watch, str) else tuple(watch)
        self.max_in_a_row = max_in_a_row
        self.skipped_steps = self.skipped_steps_in_a_row = 0
        self.skipped_epochs = self.skipped_epochs_in_a_row = 0
        self.is_epoch_lost = False
        self.roll_backs = self.roll_backs_in_a_row = 0
        self.rolled_back_to = -1
        self.roll_back_reason = ""
        self._watches_loss, self._watches_gradients = "loss" in self.watch, "gradients" in self.watch
        self._watches_weights = "parameters" in self.watch
        self._collected = [name for name in ("observations", "rewards") if name in self.watch]
        self._estimated = ["advantages"] if self._collected else []
        self._last_good = finite.LastGood()

    def on_training_start(self, ctx: HookContext) -> None:
        """Keep the weights the run begins with; if they are broken already there is nothing to go back to."""
        if self.policy == "roll-back" and ctx.loop is not None and ctx.loop.hooks.ranks.world_size > 1:
            raise RegistrationError(
                "A NaN guard rolls back in a run of one process; with several learners take 'stop' or 'skip'."
            )
        broken = self._broken_weights(ctx)
        if broken:
            raise NonFiniteError(
                f"The run begins with numbers that are not finite: {broken}; begin with other weights, or resume from "
                "a checkpoint whose weights are finite."
            )
        self._keep_weights(ctx)

    def on_rollout_end(self, ctx: HookContext) -> dict[str, int] | None:
        """Look at the observations and rewards of this epoch."""
        broken = self._agreed(self._broken_columns(self._collected, ctx.experience), ctx)
        return self._give_up_epoch(broken, ctx) if broken else None

    def on_train_phase_start(self, ctx: HookContext) -> dict[str, int] | None:
        """Look at the advantages, and end the phase at once if the epoch is lost.

        An observation after the last one that is stored is seen here: the advantages are made of its value, too.
        """
        metrics = None
        if not self.is_epoch_lost:
            broken = self._agreed(self._broken_columns(self._estimated, ctx.experience), ctx)
            metrics = self._give_up_epoch(broken, ctx) if broken else None
        if self.is_epoch_lost:
            ctx.state.stop_update_epoch = True
        return metrics

    def on_gradients(self, ctx: HookContext) -> dict[str, int] | None:
        """Look at the gradients and the loss, before the step is taken."""
        loss = finite.scalar(ctx.loss) if self._watches_loss else None
        if self._watches_gradients:
            gauge = finite.read_step_gauge(ctx.model, ctx.optimizer, loss)
        else:
            gauge = finite.read_gauge((), loss)
        broken = "" if math.isfinite(gauge) else self._broken_step(loss, ctx)
        if not broken and not self.is_epoch_lost:
            self.skipped_steps_in_a_row = 0
            return None
        # A lost epoch may have steps left, in workloads that do not look at stop_update_epoch.
        metrics = None if self.is_epoch_lost else self._give_up_step(broken, ctx)
        ctx.request_skip()
        return metrics

    def on_train_phase_end(self, ctx: HookContext) -> dict[str, int] | None:
        """Look at the weights; keep them if they are fine, else put the last good ones back."""
        broken = self._broken_weights(ctx)
        if broken:
            return self._put_back_weights(broken, ctx)
        self._keep_weights(ctx)
        if not self.is_epoch_lost:
            self.skipped_epochs_in_a_row = 0
        return None

    def on_epoch_end(self, ctx: HookContext) -> dict[str, int] | None:
        """Roll back if this epoch has asked for it."""
        self.is_epoch_lost = False
        if not self.roll_back_reason:
            return None
        reason, self.roll_back_reason = self.roll_back_reason, ""
        service: Checkpoints | None = ctx.services.get(CHECKPOINTS)
        checkpoint = None if service is None else service.load_latest()
        if checkpoint is None or ctx.loop is None:
            raise self._error(reason, ctx, "there is no checkpoint to roll back to")
        place = checkpoint["state"]["clocks"]["epochs"]
        in_a_row = self.roll_backs_in_a_row + 1 if place == self.rolled_back_to else 1
        if in_a_row > self.max_in_a_row:
            raise self._error(reason, ctx, f"rolling back to epoch {place} {in_a_row - 1} times has not helped")
        counted = self.skipped_steps, self.skipped_epochs, self.roll_backs + 1
        log.warning("not finite: %s; going back from epoch %d to epoch %d", reason, ctx.state.epoch, place)
        ctx.loop.roll_back(checkpoint, derive_seed(ctx.state.seed, "roll-back", *counted))
        # The state gone back to knows nothing of all this.
        self.skipped_steps, self.skipped_epochs, self.roll_backs = counted
        self.rolled_back_to, self.roll_backs_in_a_row = place, in_a_row
        self._keep_weights(ctx)
        return {"roll_backs": self.roll_backs}

    # What is broken, in words; empty if nothing is

    def _broken_step(self, loss: Any, ctx: HookContext) -> str:
        gradients = finite.broken_gradients(ctx.model, ctx.optimizer) if self._watches_gradients else ""
        return finite.step_words(loss, gradients)

    def _broken_weights(self, ctx: HookContext) -> str:
        if not self._watches_weights:
            return ""
        gauge = finite.read_gauge(finite.weight_tensors(ctx.model, ctx.optimizer))
        return "" if math.isfinite(gauge) else finite.broken_weights(ctx.model, ctx.optimizer)

    def _broken_columns(self, wanted: Sequence[str], experience: Any) -> str:
        if not wanted or not hasattr(experience, "observation_names"):
            return ""
        names = [name for column in wanted for name in _names(column, experience) if finite.is_float(experience[name])]
        gauge = finite.read_gauge([experience[name][: experience.steps] for name in names])
        return "" if math.isfinite(gauge) else finite.broken_columns(experience, names)

    def _agreed(self, broken: str, ctx: HookContext) -> str:
        """Return what the first rank that found something in its own data found: all must do the same.

        Gradients, loss and weights need no such exchange: they are the same on all ranks.
        """
        if ctx.loop is None or ctx.loop.hooks.ranks.world_size == 1:
            return broken
        return next(filter(None, ctx.loop.hooks.ranks.gather(broken)), "")

    # What is done about it

    def _give_up_step(self, broken: str, ctx: HookContext) -> dict[str, int] | None:
        weights = self._broken_weights(ctx)
        if weights:  # the cause: without them no later step of this epoch could be any better
            return self._put_back_weights(weights, ctx)
        if self.policy != "skip":
            return self._give_up_epoch(broken, ctx)
        self._require_hope(self.skipped_steps_in_a_row, "steps", broken, ctx)
        self.skipped_steps_in_a_row += 1
        self.skipped_steps += 1
        return {"skipped_steps": self.skipped_steps}

    def _put_back_weights(self, broken: str, ctx: HookContext) -> dict[str, int] | None:
        self._last_good.put_back(ctx.model, ctx.optimizer)
        return self._give_up_epoch(f"{broken}, where the last good ones were put back", ctx)

    def _give_up_epoch(self, broken: str, ctx: HookContext) -> dict[str, int] | None:
        """Take no step any more in this epoch, and stop or prepare to roll back if that is the policy."""
        if self.policy == "stop":
            raise self._error(broken, ctx)
        if self.policy == "roll-back" and ctx.services.get(CHECKPOINTS) is None:
            raise self._error(broken, ctx, "there is no service 'checkpoints' to roll back with")
        was_lost, self.is_epoch_lost = self.is_epoch_lost, True
        ctx.state.stop_update_epoch = True
        if was_lost:
            return None
        if self.policy == "roll-back":
            self.roll_back_reason = broken
            return None
        self._require_hope(self.skipped_epochs_in_a_row, "epochs", broken, ctx)
        self.skipped_epochs_in_a_row += 1
        self.skipped_epochs += 1
        return {"skipped_epochs": self.skipped_epochs}

    def _require_hope(self, in_a_row: int, what: str, broken: str, ctx: HookContext) -> None:
        if in_a_row >= self.max_in_a_row:
            raise self._error(broken, ctx, f"skipping {in_a_row} {what} in a row has not helped")
        log.warning("not finite: %s, at %s; skipped", broken, _when(ctx))

    def _keep_weights(self, ctx: HookContext) -> None:
        if self._watches_weights:
            self._last_good.keep(ctx.model, ctx.optimizer)

    def _error(self, broken: str, ctx: HookContext, why_now: str = "") -> NonFiniteError:
        also = f" {why_now[0].upper()}{why_now[1:]}." if why_now else ""
        other = ", or take the policy 'skip'" if self.policy == "stop" else ""
        return NonFiniteError(
            f"Not finite: {broken}, at {_when(ctx)}.{also} The weights are finite: no step was taken. Lower the "
            f"learning rate, check the rewards and observations{other}; then resume from the last checkpoint."
        )


def _when(ctx: HookContext) -> str:
    return ", ".join(f"{clock}={ctx.readings[clock]}" for clock in _CLOCKS)


def _names(column: str, experience: Any) -> list[str]:
    if column == "observations":
        return experience.observation_names
    return [column] if column in experience else []
