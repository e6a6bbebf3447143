"""The command line; `main` is the entry point and imports a command only when it is called."""

from tailpath.cli.application import main

__all__ = ["main"]
