"""Data that change while a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookloop.core import HookContext
from hookloop.errors import RegistrationError
from hookloop.hooks.telling import tell

if TYPE_CHECKING:
    from hookloop.supervised.engine.drift import Profile

Live = Any
Plain = Any


class DriftHook:
    """Log how far the data of each epoch are from those of the first, or from others, and tell when it is too far.

    ``drift/inputs`` and ``drift/targets`` are Jensen-Shannon divergences: 0 for equal data, 1 for data that have
    nothing in common. Where the batches are mappings, there is one for each field.

    Args:
        reference: Data to compare with: a tensor, or a tuple or mapping of tensors like the batches; by default what
            the first epoch brings.
        batches: How many batches of each epoch to look at, the first ones.
        bins: How finely numbers are told apart.
        warning: A divergence to tell of.
        alert: A divergence to tell of more loudly.
    """

    name = "drift"
    on_error = "disable"

    def __init__(
        self,
        reference: Live = None,
        batches: int = 100,
        bins: int = 50,
        warning: float = 0.1,
        alert: float = 0.2,
    ) -> None:
        for name, value in (("batches", batches), ("bins", bins)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise RegistrationError(f"{name} must be at least 1, got {value!r}.")
        if not 0 < warning <= alert <= 1:
            raise RegistrationError(f"0 < warning <= alert <= 1 must hold, got warning={warning!r}, alert={alert!r}.")
        self.batches = batches
        self.bins = bins
        self.warning = warning
        self.alert = alert
        self._given = reference
        self._reference: Profile | None = None
        self._epoch: Profile | None = None
        self._seen = 0
        self._levels: dict[str, str] = {}

    def on_minibatch_start(self, ctx: HookContext) -> None:
        """Count what occurs in a batch, if it is one of those to look at."""
        if self._seen < self.batches:
            self._seen += 1
            if self._epoch is None:
                self._epoch = self._begin()
            self._epoch.add(ctx.batch)

    def on_epoch_end(self, ctx: HookContext) -> None:
        """Compare what was counted with the reference; the first epoch becomes it, if there is none."""
        epoch, self._epoch, self._seen = self._epoch, None, 0
        if epoch is None or not epoch.counts:
            return
        if self._reference is None:
            self._reference = epoch
            return
        found = self._reference.drift_of(epoch)
        for part, divergence in found.items():
            self._tell(ctx, part, divergence)
        ctx.log({f"drift/{part}": divergence for part, divergence in found.items()})

    def state_dict(self) -> dict[str, Plain]:
        """Return what was counted in the reference and in the running epoch."""
        return {
            "reference": None if self._reference is None else self._reference.state_dict(),
            "epoch": None if self._epoch is None else self._epoch.state_dict(),
            "seen": self._seen,
            "levels": dict(self._levels),
        }

    def load_state_dict(self, saved: Mapping[str, Plain]) -> None:
        """Go on counting from there."""
        self._reference, self._epoch = self._loaded(saved["reference"]), self._loaded(saved["epoch"])
        self._seen, self._levels = saved["seen"], dict(saved["levels"])

    def _begin(self) -> Profile:
        if self._reference is None and self._given is not None:
            self._reference = self._empty()
            self._reference.add(self._given)
        return self._empty() if self._reference is None else self._reference.like()

    def _empty(self) -> Profile:
        from hookloop.supervised.engine.drift import Profile  # here and not above: with torch

        return Profile(self.bins)

    def _loaded(self, saved: Mapping[str, Plain] | None) -> Profile | None:
        if saved is None:
            return None
        found = self._empty()
        found.load_state_dict(saved)
        return found

    def _tell(self, ctx: HookContext, part: str, divergence: float) -> None:
        """Tell when it has become serious, and not again while it stays so."""
        from hookloop.supervised.engine.drift import drift_level

        level = drift_level(divergence, self.warning, self.alert)
        if level not in ("none", self._levels.get(part)):
            limit = self.alert if level == "alert" else self.warning
            tell(ctx, f"drift {level}", f"the {part} are {divergence:.3g} from the reference, {limit:g} or more")
        self._levels[part] = level
