"""`python -m tailpath` is the command `tailpath`, and both begin here: Ctrl-C while the program
loads is Ctrl-C, too.
"""

import sys

try:
    from tailpath.cli import main
except KeyboardInterrupt:
    print("tailpath: error: interrupted", file=sys.stderr)
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
