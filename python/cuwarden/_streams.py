# SPDX-License-Identifier: MIT
"""Streams to compute in, for what comes in, and for what goes out."""
from __future__ import annotations

import ctypes
from contextlib import contextmanager
from enum import IntEnum
from typing import Iterator, NamedTuple

from . import _table
from ._calls import Error, must, text
from ._table import Code


class Lane(IntEnum):
    """The streams of a set: enum cuwarden_stream."""

    COMPUTE = 0
    IN = 1
    OUT = 2


class StreamsState(NamedTuple):
    """How a stream set stands: struct cuwarden_streams. Streams are numbers, as torch.cuda.ExternalStream takes them."""

    id: int
    name: str
    compute: int
    in_: int
    out: int
    age_ns: int
    works: int
    refused: int
    compute_ns: int
    in_ns: int
    out_ns: int
    busy_ns: int
    compute_use: float
    in_use: float
    out_use: float
    overlap: float
    device: int


class Streams:
    """Three streams of a device that do not wait for the default one. They end with end(), or with a `with` block."""

    def __init__(self, name: str, device: int) -> None:
        self._raw = ctypes.c_uint64(0)
        must("streams_make", name.encode(), device, ctypes.byref(self._raw))

    @property
    def id(self) -> int:
        return self._raw.value

    def order(self, later: Lane, earlier: Lane) -> None:
        """What `later` is given from now on begins after what `earlier` was given."""
        must("streams_order", self._raw, int(later), int(earlier))

    @contextmanager
    def work(self, lane: Lane) -> Iterator[bool]:
        """What the stream is given inside is a piece of work. False: 32 are on their way, or a stream is captured, and it is not counted;
        nor is one that ends in a capture."""
        is_counted = True
        try:
            must("work_begin", self._raw, int(lane))
        except Error as error:
            if error.code != Code.BUSY:
                raise
            is_counted = False
        try:
            yield is_counted
        finally:
            if is_counted:
                try:
                    must("work_end", self._raw, int(lane))
                except Error as error:
                    if error.code != Code.BUSY:  # the next one begins all the same
                        raise

    def reset(self) -> None:
        """Times and counts begin anew."""
        must("streams_reset", self._raw)

    def state(self) -> StreamsState:
        raw = _table.RawStreams()
        must("streams_now", self._raw, ctypes.byref(raw), ctypes.sizeof(raw))
        values = {field: getattr(raw, field.rstrip("_")) for field in StreamsState._fields}
        values["name"] = text(raw.name)
        return StreamsState(**values)

    def end(self) -> None:
        """Waits for what is on its way, and destroys the streams."""
        must("streams_end", self._raw)

    def __enter__(self) -> "Streams":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()
