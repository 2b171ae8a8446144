"""``python -m ascendkit.jit``."""

import sys

from ascendkit.jit.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
