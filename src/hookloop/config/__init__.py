"""Configuration: files read safely, and settings merged."""
