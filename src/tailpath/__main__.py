"""`python -m tailpath` is the command `tailpath`, and both begin here, so that Ctrl-C works while
the program is still loading.
"""

import sys

try:
    from tailpath.cli import main
except KeyboardInterrupt:
    print("tailpath: error: interrupted", file=sys.stderr)
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
