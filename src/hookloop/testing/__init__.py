"""What you need to test a hook: events without a trainer, a manual clock, fake ranks, and two proofs."""

from hookloop.testing.clock import ManualClock
from hookloop.testing.harness import Harness, TraceHook
from hookloop.testing.proofs import assert_pure, assert_resumable
from hookloop.testing.ranks import FakeRanks
from hookloop.testing.toy import ToyWorkload

__all__ = ["FakeRanks", "Harness", "ManualClock", "ToyWorkload", "TraceHook", "assert_pure", "assert_resumable"]
