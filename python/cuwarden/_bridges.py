# SPDX-License-Identifier: MIT
"""Copies from one device to another."""
from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import NamedTuple, Tuple

from . import _table
from ._calls import must, text


class Way(IntEnum):
    """How bytes come from one device to another: enum cuwarden_way."""

    LOCAL = 0
    PEER = 1
    STAGED = 2


class BridgeState(NamedTuple):
    """How a bridge stands: struct cuwarden_bridge."""

    id: int
    name: str
    chunk_bytes: int
    started: int
    refused: int
    peer_copies: int
    staged_copies: int
    bytes: int
    transfer_ns: int
    waited_ns: int
    overlap: float
    from_device: int
    to_device: int
    way: Way


class Bridge:
    """Carries bytes from a device to another, or the same: as peers where they can, unless way is Way.STAGED, else in chunks
    through pinned memory.

    It ends with end(), or with a `with` block.
    """

    def __init__(self, name: str, from_device: int, to_device: int, *, chunk_bytes: int = 0, way: Way = Way.PEER) -> None:
        self._raw = ctypes.c_uint64(0)
        must("bridge_make", name.encode(), from_device, to_device, chunk_bytes, int(way), ctypes.byref(self._raw))

    @property
    def id(self) -> int:
        return self._raw.value

    def copy(self, to: int, source: int, size: int, stream: int = 0) -> Tuple[int, Way]:
        """Orders a copy after what the stream (0: the default one) has been given, and before what it is given later.
        NO_STREAM: waits for it, and for no stream. Its number and way. Error(BUSY): 16 are on their way."""
        number, way = ctypes.c_uint64(0), ctypes.c_int32(0)
        must("bridge_copy", self._raw, to, source, size, stream, ctypes.byref(number), ctypes.byref(way))
        return number.value, Way(way.value)

    def wait(self, number: int = 0) -> None:
        """For the copy of this number (0: the last one), and all before it."""
        must("bridge_wait", self._raw, number)

    def state(self) -> BridgeState:
        raw = _table.RawBridge()
        must("bridge_now", self._raw, ctypes.byref(raw), ctypes.sizeof(raw))
        values = {field: getattr(raw, field) for field in BridgeState._fields}
        values["name"] = text(raw.name)
        values["way"] = Way(raw.way)
        return BridgeState(**values)

    def end(self) -> None:
        """Waits for what is on its way, and frees all."""
        must("bridge_end", self._raw)

    def __enter__(self) -> "Bridge":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()
