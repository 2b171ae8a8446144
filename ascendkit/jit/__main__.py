"""``python -m ascendkit.jit``."""

from ascendkit.cli import run
from ascendkit.jit.cli import main

if __name__ == "__main__":
    run(main)
