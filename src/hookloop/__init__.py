"""hookloop: a training loop that only trains, and hooks for everything else."""
