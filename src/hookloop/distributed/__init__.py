"""Several processes of one run, started by torchrun: they meet, agree, and average."""

from hookloop.distributed.torch_ranks import TorchRanks, join_ranks, leave_ranks

__all__ = ["TorchRanks", "join_ranks", "leave_ranks"]
