"""``python -m hookloop``."""

from hookloop.cli.main import main

main()
