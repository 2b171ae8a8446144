"""TileLang kernels written for the emulator's tests. Each module holds one family."""
