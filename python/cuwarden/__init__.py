# SPDX-License-Identifier: MIT
"""What a program may ask of cuwarden about its CUDA memory.

The functions are those of cuwarden(3), which says what each does. Without the library (`cuwarden run
-- python ...`) they do nothing: results are empty or zero, and is_active() is False. What the library
refuses raises Error, with the numbers in its text. Only a Buffer, a Download, a Bridge, a Prefetch and Streams are things of their own,
and cannot do without: making one raises Error(NOT_ACTIVE). Bytes are bytes, times nanoseconds, shares 0 to 1.
Any thread may call any function; tags belong to the calling thread.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
import os
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from . import _table
from ._calls import Error, call as _call, fill as _fill, must as _must, text as _text
from ._bridges import Bridge, BridgeState, Way
from ._downloads import NO_STREAM, Download, DownloadState, Frame
from ._estimates import Estimate, estimate
from ._prefetches import Prefetch, PrefetchState, Stage
from ._streams import Lane, Streams, StreamsState
from ._table import BudgetHow, BufferFlags, Code, Level, ModelFlags, Preset, Trim

__all__ = [
    "ALL_DEVICES", "HOST", "NO_STREAM", "Block", "Bridge", "BridgeState", "Budget", "BudgetHow", "Buffer", "BufferState", "Code",
    "Download", "DownloadState", "Error", "Estimate", "Frame", "Freed", "Lane", "Leaks", "Level", "ModelFlags", "Prefetch", "PrefetchState",
    "Preset", "Pressure",
    "Stats", "Stage", "Streams", "StreamsState", "Trim", "Way", "batch", "blocks", "budget", "buffers", "clean_buffers", "device_alloc",
    "device_stats", "estimate", "find_block", "is_active", "keep", "leak_check", "mark",
    "name_block", "on_out_of_memory", "on_pressure", "pick_device", "pressure", "recording", "report", "scope", "set_budget", "set_limit",
    "set_pool_max", "step", "tag", "tag_pop", "tag_push", "tag_stats", "trim", "version",
]

ALL_DEVICES = -1
HOST = -2

Path = Union[str, "os.PathLike[str]"]


class Block(NamedTuple):
    """One allocation."""

    id: int
    """no other allocation of this process has it, before or after"""
    address: int
    bytes: int
    """asked for"""
    held_bytes: int
    """taken from the driver for it"""
    age_ns: int
    kind: str
    """"device", "pinned", ..."""
    function: str
    """that the program called, "cudaMalloc\""""
    tag: str
    name: str
    device: int
    """or HOST"""
    thread: int


class Stats(NamedTuple):
    """Of a device, of all, of the host, or of a tag: struct cuwarden_stats of cuwarden(3)."""

    allocations: int = 0
    frees: int = 0
    failures: int = 0
    out_of_memory: int = 0
    live_blocks: int = 0
    live_bytes: int = 0
    allocated_bytes: int = 0
    total_bytes: int = 0
    peak_bytes: int = 0
    reserved_bytes: int = 0
    peak_reserved_bytes: int = 0
    idle_blocks: int = 0
    idle_bytes: int = 0
    hits: int = 0
    misses: int = 0
    fallbacks: int = 0
    fallback_bytes: int = 0
    resizes: int = 0
    resized_bytes: int = 0
    device_total_bytes: int = 0
    device_free_bytes: int = 0
    limit_bytes: int = 0
    hit_rate: float = 0.0
    utilisation: float = 0.0
    fragmentation: float = 0.0
    efficiency: float = 1.0
    backend: str = ""
    transfers: int = 0
    transfer_bytes: int = 0
    transfer_ns: int = 0
    transfer_waited_ns: int = 0
    transfer_overlap: float = 0.0
    peer_transfers: int = 0
    peer_bytes: int = 0
    staged_transfers: int = 0
    staged_bytes: int = 0


class Leaks(NamedTuple):
    """What a leak check found."""

    found: Tuple[Block, ...]
    blocks: int
    bytes: int
    excused_blocks: int
    excused_bytes: int


class Freed:
    """What a scope did at its end: struct cuwarden_freed. All zero until then."""

    blocks = 0
    bytes = 0
    left_blocks = 0
    left_bytes = 0


class Budget(NamedTuple):
    """How much memory a tag may have, and has: struct cuwarden_budget."""

    bytes: int
    used_bytes: int
    peak_bytes: int
    refused: int
    exceeded: int
    how: BudgetHow


class BufferState(NamedTuple):
    """How a growable buffer stands: struct cuwarden_buffer. Used and capacity are elements."""

    id: int
    name: str
    address: int
    element_bytes: int
    used: int
    capacity: int
    capacity_bytes: int
    most_bytes: int
    resizes: int
    copies: int
    copied_bytes: int
    age_ns: int
    unused_ns: int
    utilisation: float
    device: int
    is_in_place: bool


class Pressure(NamedTuple):
    """How scarce memory is: struct cuwarden_pressure."""

    use: float
    used_bytes: int
    total_bytes: int
    held_bytes: int
    limit_bytes: int
    level: Level
    device: int


def is_active() -> bool:
    """Whether the library is there and accounts for this process, or will from its first call of CUDA on."""
    function = _table.member("is_active")
    return function is not None and bool(function())


def version() -> str:
    """Of the library, "0.1.0"; "" without it."""
    function = _table.member("version")
    return _text(function()) if function is not None else ""


# ---- tags and steps ----

def tag_push(name: str) -> None:
    """What this thread allocates until the matching pop has this tag."""
    _call("tag_push", name.encode())


def tag_pop() -> None:
    """Ends this thread's last push. Error(UNBALANCED): there is none."""
    _call("tag_pop")


@contextmanager
def tag(name: str) -> Iterator[None]:
    """What this thread allocates inside has this tag. Not across an await or a yield: other tasks of the thread would have it, too."""
    is_open = _call("tag_push", name.encode())
    try:
        yield
    finally:
        if is_open:
            _call("tag_pop")


def step(name: str) -> None:
    """One iteration of what has this name has ended."""
    _call("step", name.encode())


# ---- statistics ----

def _stats(device: int, name: Optional[bytes]) -> Stats:
    raw = _table.RawStats()
    if not _call("stats", device, name, ctypes.byref(raw), ctypes.sizeof(raw)):
        return Stats()
    values = {field: getattr(raw, field) for field in Stats._fields}
    values["backend"] = _text(raw.backend)
    return Stats(**values)


def device_stats(device: int = ALL_DEVICES) -> Stats:
    """Of a device, of all devices, or of the HOST."""
    return _stats(device, None)


def tag_stats(name: str, device: int = ALL_DEVICES) -> Stats:
    """Of what was allocated with this tag; "": without any. Error(NOT_FOUND): nobody has used it."""
    return _stats(device, name.encode())


# ---- blocks ----

def _block(raw: _table.RawBlock) -> Block:
    return Block(raw.id, raw.address, raw.bytes, raw.held_bytes, raw.age_ns, _text(raw.kind), _text(raw.function),
                 _text(raw.tag), _text(raw.name), raw.device, raw.thread)


def _collector(into: List[Block]) -> object:
    """A callback must not raise: what is read here cannot."""
    def collect(raw: "ctypes._Pointer[_table.RawBlock]", _argument: Optional[int]) -> int:
        into.append(_block(raw.contents))
        return 0
    return _table.BLOCK_FUNCTION(collect)


def blocks(since: int = 0, older_than_ns: int = 0, tag: Optional[str] = None, device: int = ALL_DEVICES) -> List[Block]:
    """Live blocks, in no order: allocated after a mark, of at least an age, with a tag ("": without any), on a device."""
    raw = _fill(_table.RawFilter, since=since, older_than_ns=older_than_ns, device=device,
                tag=None if tag is None else tag.encode())
    found: List[Block] = []
    _call("visit", ctypes.byref(raw), ctypes.sizeof(raw), _collector(found), None)
    return found


def find_block(address: int) -> Optional[Block]:
    """The live block that begins at this address (tensor.untyped_storage().data_ptr(), say)."""
    raw = _table.RawBlock()
    try:
        is_there = _call("block_find", address, ctypes.byref(raw), ctypes.sizeof(raw))
    except Error as error:
        if error.code == Code.NOT_FOUND:
            return None
        raise
    return _block(raw) if is_there else None


def name_block(address: int, name: str) -> None:
    """What the live block at this address is called until it is freed. Error(NOT_FOUND): there is none."""
    _call("block_name", address, name.encode())


def mark() -> int:
    """A moment, for blocks() and leak_check()."""
    raw = ctypes.c_uint64(0)
    _call("mark", ctypes.byref(raw))
    return raw.value


def leak_check(since: int = 0) -> Leaks:
    """What would be a leak if the program ended now, of what was allocated after the mark."""
    raw = _table.RawLeaks()
    found: List[Block] = []
    _call("leaks", since, _collector(found), None, ctypes.byref(raw), ctypes.sizeof(raw))
    return Leaks(tuple(found), raw.blocks, raw.bytes, raw.excused_blocks, raw.excused_bytes)


# ---- files ----

def report(path: Path) -> None:
    """Writes a report of this moment: JSON if the name ends in .json, else text."""
    _call("report", os.fsencode(path))


@contextmanager
def recording(path: Path) -> Iterator[None]:
    """A line for each allocation and free inside goes to this new file, for `cuwarden replay`."""
    is_open = _call("record_start", os.fsencode(path))
    try:
        yield
    finally:
        if is_open:
            _call("record_stop")


# ---- control ----

def _pressure(raw: _table.RawPressure) -> Pressure:
    return Pressure(raw.use, raw.used_bytes, raw.total_bytes, raw.held_bytes, raw.limit_bytes, Level(raw.level), raw.device)


def pressure(device: int = ALL_DEVICES) -> Optional[Pressure]:
    """Of a device, or of the one where memory is scarcest; None: the program uses none of them."""
    raw = _table.RawPressure()
    try:
        is_there = _call("pressure", device, ctypes.byref(raw), ctypes.sizeof(raw))
    except Error as error:
        if error.code in (Code.UNUSED_DEVICE, Code.NOT_STARTED):
            return None
        raise
    return _pressure(raw) if is_there else None


def trim(how: Trim = Trim.CLEAR, device: int = ALL_DEVICES) -> int:
    """Gives memory that the pool keeps back to the driver; returns the bytes."""
    raw = ctypes.c_uint64(0)
    _call("trim", device, int(how), ctypes.byref(raw))
    return raw.value


def pick_device(size: int, name: str = "") -> Optional[int]:
    """The device with most room, or the one that the name had last; None without the library. Error(OUT_OF_DEVICE) or
    Error(OUT_OF_LIMIT): none has so much."""
    device = ctypes.c_int32(0)
    return device.value if _call("device_pick", name.encode(), size, ctypes.byref(device)) else None


def device_alloc(size: int, name: str = "") -> Optional[Tuple[int, int]]:
    """Memory there: its address, which cuMemFree() and cudaFree() take, and the device; None without the library."""
    device, address = ctypes.c_int32(0), ctypes.c_void_p(None)
    if not _call("device_alloc", name.encode(), size, ctypes.byref(device), ctypes.byref(address)):
        return None
    return address.value or 0, device.value


def set_limit(size: Optional[int], device: int = ALL_DEVICES) -> None:
    """What this process may hold from now on; None: no limit."""
    _call("limit", device, 0 if size is None else size)


def set_budget(tag: str, size: Optional[int], how: BudgetHow = BudgetHow.WARN) -> None:
    """How much device memory may be live with exactly this tag; None: as much as there is. Error(NOT_FOUND) then: it had
    no budget of its own."""
    if size is None:
        _call("budget_clear", tag.encode())
    else:
        _call("budget_set", tag.encode(), size, int(how))


def budget(tag: str) -> Optional[Budget]:
    """The budget that counts this tag; None: none does."""
    raw = _table.RawBudget()
    try:
        is_there = _call("budget_now", tag.encode(), ctypes.byref(raw), ctypes.sizeof(raw))
    except Error as error:
        if error.code == Code.NOT_FOUND:
            return None
        raise
    if not is_there:
        return None
    return Budget(raw.bytes, raw.used_bytes, raw.peak_bytes, raw.refused, raw.exceeded, BudgetHow(raw.how))


def set_pool_max(size: int, device: int = ALL_DEVICES) -> None:
    """How much idle memory the pool may keep from now on; what the device still uses goes once it is done."""
    _call("pool_max", device, size)


# The library calls the same two functions for all listeners: one made for each would have to outlive the threads that are inside it.
_listeners: Dict[int, Callable[..., Any]] = {}
_listener_numbers = itertools.count(1)


def _tell_pressure(raw: "ctypes._Pointer[_table.RawPressure]", before: int, number: int) -> None:
    function = _listeners.get(number)
    if function is not None:
        function(_pressure(raw.contents), Level(before))


def _ask_for_memory(device: int, size: int, number: int) -> int:
    function = _listeners.get(number)
    return int(function is not None and bool(function(device, size)))


@functools.lru_cache(maxsize=None)
def _raw_listener(entry: str) -> Any:
    return _table.PRESSURE_FUNCTION(_tell_pressure) if entry == "pressure_listen" else _table.MEMORY_FUNCTION(_ask_for_memory)


@contextmanager
def _listening(entry: str, function: Callable[..., Any]) -> Iterator[None]:
    number = next(_listener_numbers)
    _listeners[number] = function
    is_on = False
    try:
        is_on = _call(entry, _raw_listener(entry), number, 1)
        yield
    finally:
        if is_on:
            _call(entry, _raw_listener(entry), number, 0)
        del _listeners[number]


def on_pressure(function: Callable[[Pressure, Level], None]) -> ContextManager[None]:
    """Inside, function(now, level before) is called when the level of a device changes. What it raises is printed.

    The end waits until no thread is inside the function, except where the function itself ends it.
    """
    return _listening("pressure_listen", function)


def on_out_of_memory(function: Callable[[int, int], bool]) -> ContextManager[None]:
    """Inside, function(device, bytes) is called before a request fails; if it returns True, the request is tried again.

    What it raises is printed, and counts as False. The end waits as that of on_pressure.
    """
    return _listening("memory_listen", function)


# ---- batches and scopes ----

@contextmanager
def batch() -> Iterator[None]:
    """This thread's frees inside share one wait, at the end."""
    is_open = _call("batch_begin")
    try:
        yield
    finally:
        if is_open:
            _call("batch_end")


@contextmanager
def scope(name: str = "") -> Iterator[Freed]:
    """What this thread allocates inside, and neither frees nor keeps, is freed at the end, but for what a leak check excuses."""
    freed = Freed()
    is_open = _call("scope_begin", name.encode())
    try:
        yield freed
    finally:
        if is_open:
            raw = _table.RawFreed()
            _call("scope_end", ctypes.byref(raw), ctypes.sizeof(raw))
            freed.blocks, freed.bytes = raw.blocks, raw.bytes
            freed.left_blocks, freed.left_bytes = raw.left_blocks, raw.left_bytes


def keep(address: int) -> None:
    """No scope frees the live block at this address. Error(NOT_FOUND): there is none."""
    _call("keep", address)


# ---- growable buffers ----

def _buffer_state(raw: _table.RawBuffer) -> BufferState:
    return BufferState(raw.id, _text(raw.name), raw.address, raw.element_bytes, raw.used, raw.capacity, raw.capacity_bytes,
                       raw.most_bytes, raw.resizes, raw.copies, raw.copied_bytes, raw.age_ns, raw.unused_ns, raw.utilisation,
                       raw.device, bool(raw.is_in_place))


# Bytes of an element, most bytes, factor, asynchronous; as cuwarden_preset() has them.
_PRESETS = {
    Preset.POSITIONS: (12, 512 << 20, 1.3, True),
    Preset.VELOCITIES: (12, 512 << 20, 1.3, True),
    Preset.EDGES: (32, 2 << 30, 2.0, False),
    Preset.CELLS: (8, 256 << 20, 1.5, False),
}


class Buffer:
    """Device memory that grows: in place where the device maps memory, else by copies.

    It ends with end(), or with a `with` block; what is not ended is a leak. An element has element_bytes, there is room for
    count of them from the start, and never for more than most_bytes (0: all that the device has).
    """

    def __init__(self, name: str, element_bytes: int, count: int = 0, *, least_bytes: int = 0, most_bytes: int = 0,
                 growth: float = 0, is_asynchronous: bool = False, is_copying: bool = False) -> None:
        flags = BufferFlags.ASYNCHRONOUS * is_asynchronous | BufferFlags.COPYING * is_copying
        raw = _fill(_table.RawBufferSpec, name=name.encode(), element_bytes=element_bytes, count=count,
                    least_bytes=least_bytes, most_bytes=most_bytes, growth=growth, flags=int(flags))
        self._raw = ctypes.c_uint64(0)
        _must("buffer_make", ctypes.byref(raw), ctypes.sizeof(raw), ctypes.byref(self._raw))

    @classmethod
    def preset(cls, which: Preset, name: str, count: int = 0, *, is_copying: bool = False) -> "Buffer":
        """One of what a simulation has many of."""
        element_bytes, most_bytes, growth, is_asynchronous = _PRESETS[which]
        return cls(name, element_bytes, count, most_bytes=most_bytes, growth=growth, is_asynchronous=is_asynchronous,
                   is_copying=is_copying)

    @classmethod
    def find(cls, name: str, element_bytes: int = 0) -> "Buffer":
        """The one of this name. Error(NOT_FOUND): there is none; Error(WRONG_SIZE): its elements have another size."""
        found = cls.__new__(cls)
        found._raw = ctypes.c_uint64(0)
        _must("buffer_find", name.encode(), element_bytes, ctypes.byref(found._raw))
        return found

    @property
    def id(self) -> int:
        return self._raw.value

    def ensure_capacity(self, count: int, stream: int = 0) -> int:
        """The address of the elements, of which there is room for so many. Error(TOO_LARGE, OUT_OF_LIMIT, OUT_OF_DEVICE,
        BUSY): nothing has changed."""
        address = ctypes.c_void_p()
        _must("buffer_ensure", self._raw, count, stream, ctypes.byref(address))
        return address.value or 0

    def use(self, count: int) -> None:
        """Only the first count elements hold something from now on."""
        _must("buffer_use", self._raw, count)

    def state(self) -> BufferState:
        raw = _table.RawBuffer()
        _must("buffer_now", self._raw, ctypes.byref(raw), ctypes.sizeof(raw))
        return _buffer_state(raw)

    def shrink(self) -> int:
        """Gives back what the used elements do not need; returns the bytes."""
        size = ctypes.c_uint64(0)
        _must("buffer_shrink", self._raw, ctypes.byref(size))
        return size.value

    def end(self) -> None:
        """Frees its memory, which must no longer be used."""
        _must("buffer_end", self._raw)

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, *_raised: object) -> None:
        self.end()


def buffers() -> List[BufferState]:
    """All growable buffers, in no order."""
    found: List[BufferState] = []

    def collect(raw: "ctypes._Pointer[_table.RawBuffer]", _argument: Optional[int]) -> int:
        found.append(_buffer_state(raw.contents))
        return 0

    _call("buffer_visit", _table.BUFFER_FUNCTION(collect), None)
    return found


def clean_buffers(unused_ns: int = 0, below: float = 1.0) -> int:
    """Shrinks the buffers that were not used for so long and are used to a smaller share; returns the bytes."""
    raw = ctypes.c_uint64(0)
    _call("buffer_clean", unused_ns, below, ctypes.byref(raw))
    return raw.value
