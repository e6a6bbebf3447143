"""`python -m tailpath` is the command `tailpath`, and both begin here: Ctrl-C while the program loads is Ctrl-C, too."""

import sys


def main() -> int:
    """Load the command line and run it."""
    try:
        from tailpath.cli import main as run
    except KeyboardInterrupt:
        print("tailpath: error: interrupted", file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
