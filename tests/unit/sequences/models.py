"""Small models with weights that differ from each other enough to tell symbols apart."""

from __future__ import annotations

import torch

from hookloop.supervised.models.gpt import GPT


def small_model(symbols: int = 7, block_size: int = 24, *, seed: int = 0, spread: float = 8.0) -> GPT:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPT(symbols, block_size, layers=2, heads=2, width=16)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread if parameter.dim() > 1 else 1.0)  # as initialised, all symbols are almost alike
    return model.eval()
