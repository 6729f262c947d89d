"""Runs in a browser: a small server that reads what they write, on this machine alone. The extra ``dashboard``."""
