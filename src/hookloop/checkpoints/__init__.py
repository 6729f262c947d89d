"""Checkpoints: written whole or not at all, checked to the last byte before they are used, never executed."""

from hookloop.checkpoints.manager import CheckpointManager, Description
from hookloop.checkpoints.manifest import Manifest
from hookloop.checkpoints.retention import Retention
from hookloop.checkpoints.store import Checkpoint, CheckpointStore

__all__ = ["Checkpoint", "CheckpointManager", "CheckpointStore", "Description", "Manifest", "Retention"]
