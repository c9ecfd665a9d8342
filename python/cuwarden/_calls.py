# SPDX-License-Identifier: MIT
"""Calls of the library's table, and what they fail with."""
from __future__ import annotations

from typing import Optional

from . import _table
from ._table import Code


class Error(Exception):
    """What the library refused: `code`, and one line of text."""

    __module__ = "cuwarden"  # where programs find it

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


def call(name: str, *arguments: object) -> bool:
    """Calls a member of the table. False: there is no library."""
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
