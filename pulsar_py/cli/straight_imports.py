"""`StraightFinder`: finds the bytecode of our own modules without looking around (edge).

Python asks the finders on `sys.meta_path` one by one, lists directories, tries each ending that a
module may have, and puts the same paths together again and again. Of a broker's start that takes
0.05 ms a module, and there are 260 of ours before it is ready. Here a name says where its module
is: the source's time and size are looked at, and the bytecode is read, as Python itself would.

Invariant: a module is the one that Python would have found. Bytecode counts only if its header has
the time and size of the source. If it has not, or if there is none, or one that is checked in
another way or kept elsewhere, nothing is found here: Python's own finders go on, which also write
new bytecode. So there is nothing to be kept true.

A program that imports this package is left alone: only the process of the command has it, with all
that its threads import later.

Source: `SourceLoader.get_code` of importlib; PEP 3147 for the place, PEP 552 for the header:

    4 bytes  magic number of the version of Python
    4 bytes  flags, 0: valid by time and size
    4 bytes  seconds of the source's time, little endian
    4 bytes  the source's size, little endian
    rest     the module's code, as `marshal` writes it
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, spec_from_file_location
from struct import Struct
from types import CodeType, ModuleType
from typing import Final

__all__ = ["StraightFinder", "find_modules_straight"]

_PACKAGE: Final = "pulsar_py."
_HEADER: Final = Struct("<4sIII")
_UINT32: Final = 0xFFFFFFFF


class StraightFinder:
    """The finder; `sys.meta_path` has one, before Python's."""

    def __init__(self) -> None:
        directory, _, name = cache_from_source("x.py").rpartition("/")
        self._cache = directory  # "__pycache__"
        self._ending = name[1:]  # ".cpython-311.pyc", with the level of -O

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """The module's spec, with its code; None: it is not ours, or Python has to look."""
        if path is None or not fullname.startswith(_PACKAGE) or len(path) != 1:
            return None
        directory, name = path[0], fullname.rpartition(".")[2]
        found = self._spec(fullname, directory, name, None)
        if found is None:
            inside = f"{directory}/{name}"
            found = self._spec(fullname, inside, "__init__", [inside])
        return found

    def _spec(
        self, fullname: str, directory: str, name: str, locations: list[str] | None
    ) -> ModuleSpec | None:
        source = f"{directory}/{name}.py"
        cached = f"{directory}/{self._cache}/{name}{self._ending}"
        try:
            status = os.stat(source)  # noqa: PTH116 - a Path takes as long as the call
            with open(cached, "rb", buffering=0) as file:  # noqa: PTH123 - the same
                data = file.read()
        except OSError:
            return None
        head = _HEADER.pack(
            MAGIC_NUMBER, 0, int(status.st_mtime) & _UINT32, status.st_size & _UINT32
        )
        if not data.startswith(head):
            return None
        code = marshal.loads(memoryview(data)[_HEADER.size :])  # noqa: S302 - as imports do
        loader = _LoaderWithCode(fullname, source, code)
        spec = spec_from_file_location(
            fullname, source, loader=loader, submodule_search_locations=locations
        )
        assert spec is not None, "it has a loader"
        spec.cached = cached  # or it would be put together once more
        return spec


class _LoaderWithCode(SourceFileLoader):
    """Python's own loader, which has the code already when it is first asked for it."""

    def __init__(self, fullname: str, path: str, code: CodeType) -> None:
        super().__init__(fullname, path)
        self._code: CodeType | None = code  # until the module has run

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code."""
        code, self._code = self._code, None
        return super().get_code(fullname) if code is None else code


def find_modules_straight() -> None:
    """Have this process find modules of ours straight from here on."""
    if sys.pycache_prefix is None and not any(
        isinstance(each, StraightFinder) for each in sys.meta_path
    ):
        sys.meta_path.insert(0, StraightFinder())
