"""Runs on disk, seen from outside: where they are, how they stand, what they have measured, what they do now."""
