"""One file a command of `python -m ep_comm`; each has `main(config) -> exit code`."""
