"""``python -m farm``."""

from farm.cli.main import main

main()
