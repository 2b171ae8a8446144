"""Just enough of ELF to tell what a compiler made: its type, and which kernels it holds."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

RELOCATABLE, EXECUTABLE, SHARED = 1, 2, 3
_SYMTAB, _DYNSYM = 2, 11
_FUNC = 2
_SHN_UNDEF, _SHN_LORESERVE = 0, 0xFF00
# What a number read from a damaged image leads to when it is used as an offset.
_UNREADABLE = (struct.error, IndexError, OverflowError, ValueError)


@dataclass(frozen=True)
class _Section:
    name: int
    kind: int
    offset: int
    size: int
    link: int
    entry_size: int


class Elf:
    """An ELF image, 32 or 64 bit, either byte order.

    Raises:
        ValueError: not ELF, or truncated.
    """

    def __init__(self, image: bytes) -> None:
        if image[:4] != b"\x7fELF" or len(image) < 52:
            raise ValueError("not an ELF file")
        if image[4] not in (1, 2) or image[5] not in (1, 2):
            raise ValueError("an ELF file of unknown class or byte order")
        self._image = image
        self._wide = image[4] == 2
        self._order = "<" if image[5] == 1 else ">"
        try:
            self._read_header()
        except _UNREADABLE as error:
            raise ValueError("a truncated ELF file") from error

    def _read_header(self) -> None:
        word = "QQQ" if self._wide else "III"
        fields = self._unpack(f"HHI{word}IHHHHHH", 16)
        self.type: int = fields[0]
        self.machine: int = fields[1]
        offset, size, count, names = fields[5], fields[10], fields[11], fields[12]
        form = "IIQQQQIIQQ" if self._wide else "IIIIIIIIII"
        rows = [self._unpack(form, offset + index * size) for index in range(count)]
        self._sections = [_Section(r[0], r[1], r[4], r[5], r[6], r[9]) for r in rows]
        self._names = self._sections[names].offset if count else 0

    def functions(self, section: str) -> list[str]:
        """Names of the functions defined in ``section``, from the dynamic or full symbol table.

        Raises:
            ValueError: the tables are damaged.
        """
        try:
            wanted = {
                index
                for index, candidate in enumerate(self._sections)
                if self._text(self._names + candidate.name) == section
            }
            tables = {s.kind: s for s in self._sections if s.kind in (_SYMTAB, _DYNSYM)}
            table = tables.get(_DYNSYM, tables.get(_SYMTAB))
            if table is None or not wanted:
                return []
            found = {name for name, where in self._symbols(table) if where in wanted}
        except _UNREADABLE as error:
            raise ValueError("damaged ELF symbol tables") from error
        return sorted(found)

    def _symbols(self, table: _Section) -> Iterator[tuple[str, int]]:
        strings = self._sections[table.link].offset
        form, size = ("IBBHQQ", 24) if self._wide else ("IIIBBH", 16)
        for at in range(table.offset, table.offset + table.size, size):
            fields = self._unpack(form, at)
            info, where = (fields[1], fields[3]) if self._wide else (fields[3], fields[5])
            if info & 15 == _FUNC and _SHN_UNDEF < where < _SHN_LORESERVE:
                yield self._text(strings + fields[0]), where

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + form, self._image, offset)

    def _text(self, offset: int) -> str:
        end = self._image.index(b"\0", offset)
        return self._image[offset:end].decode(errors="replace")
