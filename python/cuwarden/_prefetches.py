# SPDX-License-Identifier: MIT
"""Files that come to the device while the program computes."""
from __future__ import annotations

import ctypes
import os
from enum import IntEnum
from typing import NamedTuple, Union

from . import _table
from ._calls import must, text


class Stage(IntEnum):
    """How far a file has come: enum cuwarden_stage."""

    READING = 0
    ARRIVING = 1
    ARRIVED = 2


class PrefetchState(NamedTuple):
    """How a prefetch stands: struct cuwarden_prefetch."""

    id: int
    name: str
    chunk_bytes: int
    started: int
    arrived: int
    failed: int
    refused: int
    bytes: int
    transfer_ns: int
    waited_ns: int
    overlap: float
    device: int


class Prefetch:
    """Brings files to memory of the current context's device, through two chunks of pinned memory.

    It ends with end(), or with a `with` block, which cancels what is not read; what is not ended is a leak.
    """

    def __init__(self, name: str, *, chunk_bytes: int = 0) -> None:
        self._raw = ctypes.c_uint64(0)
        must("prefetch_make", name.encode(), chunk_bytes, ctypes.byref(self._raw))

    @property
    def id(self) -> int:
        return self._raw.value

    def start(self, file: Union[str, "os.PathLike[str]", int], to: int, size: int, *, offset: int = 0, stream: int = 0) -> int:
        """Has bytes of a file (its path, or the descriptor of one that is open) brought to an address, after what the stream
        (0: the default one; NO_STREAM) has been given, and never waits for the disk. Its number. Error(BUSY): 16 are on their
        way."""
        number = ctypes.c_uint64(0)
        path, descriptor = (None, file) if isinstance(file, int) else (os.fsencode(file), -1)
        must("prefetch_start", self._raw, path, descriptor, offset, size, to, stream, ctypes.byref(number))
        return number.value

    def before(self, stream: int = 0, number: int = 0) -> None:
        """What the stream is given from now on begins after this request (0: the last one) has arrived. Waits for the disk if
        the file is not read yet, never for the device."""
        must("prefetch_before", self._raw, number, stream)

    def stage(self, number: int = 0) -> Stage:
        stage = ctypes.c_int32(0)
        must("prefetch_stage", self._raw, number, ctypes.byref(stage))
        return Stage(stage.value)

    def wait(self, number: int = 0) -> int:
        """Until this request (0: the last one) has arrived; how many bytes came, fewer than were asked for at the end of the
        file. Error(SYSTEM) names a file that cannot be read."""
        count = ctypes.c_uint64(0)
        must("prefetch_wait", self._raw, number, ctypes.byref(count))
        return count.value

    def cancel(self, number: int = 0) -> None:
        """Nothing more is read for this request (0: for all)."""
        must("prefetch_cancel", self._raw, number)

    def state(self) -> PrefetchState:
        raw = _table.RawPrefetch()
        must("prefetch_now", self._raw, ctypes.byref(raw), ctypes.sizeof(raw))
        values = {field: getattr(raw, field) for field in PrefetchState._fields}
        values["name"] = text(raw.name)
        return PrefetchState(**values)

    def end(self) -> None:
        """Cancels what is not read, waits for the device, and frees all."""
        must("prefetch_end", self._raw)

    def __enter__(self) -> "Prefetch":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()
