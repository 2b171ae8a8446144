"""The one table of environment variables; a test finds every name the source reads in it."""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "ASCENDKIT_"


@dataclass(frozen=True)
class Variable:
    """What a variable means, and what happens when it is not set."""

    meaning: str
    default: str


VARIABLES = {
    "ASCENDKIT_PLATFORM": Variable(
        "platform ops run on: reference, emulator, ascend or cuda", "device of the tensors"
    ),
    "ASCENDKIT_EMULATOR_CHECK": Variable("1: every emulated launch is judged", "not judged"),
    "ASCENDKIT_COMMIT": Variable(
        "commit written into records, where the code is not a git checkout", "asked of git"
    ),
    "ASCENDKIT_SEED": Variable(
        "seed of the tests' random inputs", "a fresh one, printed on failure"
    ),
    "ASCENDKIT_JIT_CACHE_DIR": Variable(
        "where compiled kernels are kept: a colon list, the first is written", "~/.dj"
    ),
    "ASCENDKIT_JIT_HOST_COMPILER": Variable("C++ compiler of host kernels", "first on PATH"),
    "ASCENDKIT_JIT_CPP_STANDARD": Variable("C++ standard, 17 to 23", "20"),
    "ASCENDKIT_JIT_DEBUG": Variable("print commands, keep debug information and dumps", "false"),
    "ASCENDKIT_JIT_KERNEL_DEBUG_INFO": Variable("compile kernels with debug information", "false"),
    "ASCENDKIT_JIT_DUMP_ASM": Variable("keep the assembly beside a compiled kernel", "false"),
    "ASCENDKIT_JIT_PRINT_COMPILER_COMMAND": Variable("print each compiler command", "false"),
    "ASCENDKIT_JIT_PRINT_LOAD_TIME": Variable("print how long loading a kernel took", "false"),
    "ASCENDKIT_JIT_LOCK_TIMEOUT": Variable(
        "seconds to wait for another process that compiles the same kernel, 0 to 86400", "600"
    ),
}
