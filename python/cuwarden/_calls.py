# SPDX-License-Identifier: MIT
"""Calls of the library's table, and what they fail with."""
from __future__ import annotations

import ctypes
import operator
from typing import Dict, Optional, Tuple, Type, TypeVar

from . import _table
from ._table import Code

# ctypes takes numbers that do not fit, less what is too much, and text as far as its first NUL.
_RANGES: Dict[object, Tuple[int, int]] = {
    ctypes.c_int: (-(1 << 31), (1 << 31) - 1),
    ctypes.c_int32: (-(1 << 31), (1 << 31) - 1),
    ctypes.c_uint32: (0, (1 << 32) - 1),
    ctypes.c_uint64: (0, (1 << 64) - 1),
    ctypes.c_size_t: (0, (1 << 64) - 1),
    ctypes.c_void_p: (-1, (1 << 64) - 1),  # NO_STREAM
}
_PARAMETERS = {name: parameters for name, _, parameters in _table.MEMBERS}
_Structure = TypeVar("_Structure", bound=ctypes.Structure)


class Error(Exception):
    """What the library refused: `code`, and one line of text."""

    __module__ = "cuwarden"  # where programs find it

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code

    def __reduce__(self) -> Tuple[object, ...]:
        """Pickled and copied: an exception's own way calls the type with the text alone."""
        return type(self), (self.code, *self.args), self.__dict__


def _fit(name: str, kind: object, value: object) -> object:
    """The value as C takes it. TypeError, ValueError: it would take another."""
    if kind is ctypes.c_char_p and isinstance(value, bytes) and b"\0" in value:
        raise ValueError(f"{name}: {value.decode(errors='replace')!r} has a NUL in it")
    if kind not in _RANGES or isinstance(value, ctypes._SimpleCData) or (kind is ctypes.c_void_p and value is None):
        return value
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # of numpy's numbers, too
    except TypeError:
        raise TypeError(f"{name}: {value!r} is no whole number") from None
    least, most = _RANGES[kind]
    if not least <= number <= most:
        raise ValueError(f"{name}: {number} is not possible, {least} to {most} are")
    return number


def fill(kind: Type[_Structure], **values: object) -> _Structure:
    """A structure for a call; what is not given is 0."""
    kinds = {field[0]: field[1] for field in kind._fields_}
    return kind(**{name: _fit(name, kinds[name], value) for name, value in values.items()})


def call(name: str, *arguments: object) -> bool:
    """Calls a member of the table. False: there is no library."""
    arguments = tuple(_fit(name, kind, value) for kind, value in zip(_PARAMETERS[name], arguments))
    function = _table.member(name)
    if function is None:
        if _table.is_there():
            raise Error(Code.UNSUPPORTED, "this library does not do that; it is older than the package")
        return False
    code = function(*arguments)
    if code in (Code.OK, Code.NOT_ACTIVE):
        return bool(code == Code.OK)
    error_text = _table.member("error_text")
    raise Error(Code(code), error_text(code).decode(errors="replace") if error_text is not None else Code(code).name)


def must(name: str, *arguments: object) -> None:
    """Memory cannot be done without."""
    if not call(name, *arguments):
        raise Error(Code.NOT_ACTIVE, "cuwarden is not active in this process: start it by 'cuwarden run -- PROGRAM'")


def text(raw: Optional[bytes]) -> str:
    return raw.decode(errors="replace") if raw is not None else ""
