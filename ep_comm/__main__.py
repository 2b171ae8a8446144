"""``python -m ep_comm bench | model | multi | preflight | simulate | size [key=value ...]``."""

from __future__ import annotations

import importlib

from ascendkit import cli
from ascendkit.errors import unknown

COMMANDS = ("bench", "model", "multi", "preflight", "simulate", "size")


def main(argv: list[str]) -> int:
    """Run the command named first."""
    if not argv or argv[0] in cli.HELP:
        print(f"{(__doc__ or '').strip(' `.')}\n\ncommands: {', '.join(COMMANDS)}")
        return 0 if argv else cli.USAGE_ERROR
    if argv[0] not in COMMANDS:
        raise unknown("command", argv[0], COMMANDS)
    command = importlib.import_module(f"ep_comm.commands.{argv[0]}")
    return int(command.main(cli.compose(f"ep_comm_{argv[0]}", argv[1:])))


if __name__ == "__main__":
    cli.run(main)
