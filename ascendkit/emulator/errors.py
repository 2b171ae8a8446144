"""What the emulator raises, and where in the kernel it happened."""

from __future__ import annotations


class EmulatorError(RuntimeError):
    """A kernel failed on the emulator, or cannot run there.

    Attributes:
        code: stable code of the kind of failure, ``AK-BOUNDS-001`` and the like.
        line: line of the generated source, 0 if unknown.
        text: that line.
        core: which core failed, ``block 3 AIV1``.
        python: the Python lines of a TileLang kernel that it came from, as text; empty if unknown.
    """

    def __init__(
        self, code: str, message: str, line: int = 0, text: str = "", core: str = ""
    ) -> None:
        super().__init__(code, message, line, text, core)
        self.code = code
        self.message = message
        self.line = line
        self.text = text
        self.core = core
        self.python: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"\n  in {self.core}" if self.core else ""
        source = f"\n  at line {self.line}: {self.text}" if self.line else ""
        python = "".join(f"\n  from {line}" for line in self.python)
        return f"{self.code}: {self.message}{where}{source}{python}"


class SourceError(EmulatorError, ValueError):
    """The text is not AscendC that the emulator can run; the message says what to do."""

    def __init__(self, message: str, code: str = "AK-SOURCE-001") -> None:
        super().__init__(code, message)
