"""`python -m tailpath` is the command `tailpath`."""

import sys

from tailpath.cli import main

sys.exit(main())
