# SPDX-License-Identifier: MIT
"""Frames that come from the device while the program computes."""
from __future__ import annotations

import ctypes
import weakref
from typing import List, NamedTuple, Optional, Tuple

from . import _table
from ._calls import Error, must, text
from ._table import Code

NO_STREAM = -1
"""for Download.start(): the copy waits for no stream by itself"""


class Frame(NamedTuple):
    """What has come from the device: struct cuwarden_frame."""

    data: memoryview
    """of bytes, read-only; the next wait, release() and end() take it away"""
    number: int
    waited_ns: int


class DownloadState(NamedTuple):
    """How a download stands: struct cuwarden_download."""

    id: int
    name: str
    most_bytes: int
    started: int
    taken: int
    skipped: int
    refused: int
    bytes: int
    transfer_ns: int
    waited_ns: int
    overlap: float
    device: int


class Download:
    """Two halves of pinned memory, of most_bytes each, that frames are copied to in turn while the program computes.

    It ends with end(), or with a `with` block; what is not ended is a leak. A wait belongs to one thread at a time.
    """

    def __init__(self, name: str, most_bytes: int) -> None:
        self._name = name
        self._raw = ctypes.c_uint64(0)
        self._views: List[Tuple[memoryview, "weakref.ref[ctypes.Array[ctypes.c_ubyte]]"]] = []
        must("download_make", name.encode(), most_bytes, ctypes.byref(self._raw))

    @property
    def id(self) -> int:
        return self._raw.value

    def start(self, address: int, size: int, stream: int = 0) -> Optional[int]:
        """Orders the copy of a frame, after what the stream (0: the default one; NO_STREAM) has been given, and never waits.
        The frame's number; None: both halves are on their way or held, and nothing was started."""
        number = ctypes.c_uint64(0)
        try:
            must("download_start", self._raw, address, size, stream, ctypes.byref(number))
        except Error as error:
            if error.code == Code.BUSY:
                return None
            raise
        return number.value

    def after(self, stream: int = 0, event: int = 0) -> None:
        """Later frames wait for one more writer: an event that was recorded, or what a stream has been given until now."""
        must("download_after", self._raw, stream, event)

    def before(self, stream: int = 0) -> None:
        """What the stream is given from now on waits for the frames that were started, and may write where they are read."""
        must("download_before", self._raw, stream)

    def wait(self, least: int = 0) -> Frame:
        """The last complete frame, of at least this number; waits only if none is complete. Takes the one before away, also
        from NumPy arrays over it, whose contents change then. Error(NOT_FOUND): none is on its way."""
        raw = _table.RawFrame()
        must("download_wait", self._raw, least, ctypes.byref(raw), ctypes.sizeof(raw))
        self._take_away()
        memory = (ctypes.c_ubyte * raw.bytes).from_address(raw.data)
        view = memoryview(memory).cast("B").toreadonly()
        self._views.append((view, weakref.ref(memory)))
        return Frame(view, raw.number, raw.waited_ns)

    def release(self) -> None:
        """The frame is no longer needed. Error(UNBALANCED): none is held."""
        must("download_release", self._raw)
        self._take_away()

    def state(self) -> DownloadState:
        raw = _table.RawDownload()
        must("download_now", self._raw, ctypes.byref(raw), ctypes.sizeof(raw))
        values = {field: getattr(raw, field) for field in DownloadState._fields}
        values["name"] = text(raw.name)
        return DownloadState(**values)

    def end(self) -> None:
        """Waits for what is on its way, and frees all. BufferError: a slice of a frame, or an array over one, is still
        there; nothing has changed."""
        self._take_away()
        if self._views:
            raise BufferError(f"download '{self._name}' cannot end: there are slices of its frames, or arrays over them; "
                              "delete them first")
        must("download_end", self._raw)

    def _take_away(self) -> None:
        """What is left are views that others were made of."""
        left = []
        for view, memory in self._views:
            try:
                view.release()
            except BufferError:
                pass
            if memory() is not None:
                left.append((view, memory))
        self._views = left

    def __enter__(self) -> "Download":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()
