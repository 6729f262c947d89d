"""What to do when memory is not enough, said where it is read: below the error."""

from __future__ import annotations

from typing import Any

from hookloop.core import HookContext

_WORDS = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


class MemoryAdviceHook:
    """Add to an out-of-memory error what would need less, with the run's own numbers."""

    name = "memory_advice"
    on_error = "disable"
    ranks = "all"

    def on_exception(self, ctx: HookContext) -> None:
        """Advise, if it was memory."""
        error = ctx.exception
        if error is None or not is_out_of_memory(error):
            return
        config: Any = getattr(ctx.trainer, "training_config", None)
        for line in _advice(config, ctx.model):
            error.add_note(line)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory is not enough, whoever raised it."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _WORDS)


def _advice(config: Any, model: Any) -> list[str]:
    lines: list[str] = []
    size, steps = getattr(config, "batch_size", None), getattr(config, "gradient_accumulation_steps", None)
    if size is not None and steps is not None and size > 1:
        lines.append(
            f"The same training with half the memory for activations: batch_size={size // 2}, "
            f"gradient_accumulation_steps={steps * 2}."
        )
    if getattr(config, "precision", None) == "fp32":
        lines.append("Half the memory for activations: precision='bf16'.")
    if getattr(config, "optimizer", None) in ("adam", "adamw"):
        lines.append("No memory for Adam's two moments: optimizer='sgd'.")
    if hasattr(model, "gradient_checkpointing_enable"):
        lines.append("Activations computed twice instead of kept: model.gradient_checkpointing_enable().")
    return lines
