# SPDX-License-Identifier: MIT
"""The table of functions that libcuwarden.so exports, as include/cuwarden/cuwarden.h has it.

A test compares names, places and numbers with the header's.
"""
from __future__ import annotations

import ctypes
import enum
from typing import Any, Callable, List, Optional, Tuple

NAME = "cuwarden_table_1"


class Code(enum.IntEnum):
    """enum cuwarden_error."""

    OK = 0
    NOT_ACTIVE = 1
    NOT_STARTED = 2
    INVALID = 3
    NOT_FOUND = 4
    NO_DEVICE = 5
    UNUSED_DEVICE = 6
    OUT_OF_LIMIT = 7
    OUT_OF_DEVICE = 8
    OUT_OF_BUDGET = 9
    OUT_OF_HOST = 10
    DRIVER = 11
    BUSY = 12
    SYSTEM = 13
    UNSUPPORTED = 14
    UNBALANCED = 15
    EXISTS = 16
    WRONG_SIZE = 17
    TOO_LARGE = 18

    @classmethod
    def _missing_(cls, value: object) -> "Code":
        return cls.UNSUPPORTED  # of a newer library


class Level(enum.IntEnum):
    """enum cuwarden_level."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2
    CRITICAL = 3


class Trim(enum.IntEnum):
    """enum cuwarden_trim_how: what goes back to the driver of what the pool keeps."""

    SHRINK = 0
    CLEAR = 1
    EMERGENCY = 2


class BudgetHow(enum.IntEnum):
    """enum cuwarden_budget_how: what happens to an allocation that a budget has no room for."""

    WARN = 0
    REFUSE = 1


class BufferFlags(enum.IntFlag):
    """enum cuwarden_buffer_flags."""

    ASYNCHRONOUS = 1
    COPYING = 2


class ModelFlags(enum.IntFlag):
    """enum cuwarden_model_flags."""

    TRAINING = 1
    CHECKPOINTING = 2
    MASTERLESS = 4


class Preset(enum.IntEnum):
    """enum cuwarden_buffer_preset: what a simulation has many of."""

    POSITIONS = 0
    VELOCITIES = 1
    EDGES = 2
    CELLS = 3


class RawBlock(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("held_bytes", ctypes.c_uint64),
        ("age_ns", ctypes.c_uint64),
        ("kind", ctypes.c_char_p),
        ("function", ctypes.c_char_p),
        ("tag", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("device", ctypes.c_int32),
        ("thread", ctypes.c_uint32),
    ]


class RawFilter(ctypes.Structure):
    _fields_ = [
        ("since", ctypes.c_uint64),
        ("older_than_ns", ctypes.c_uint64),
        ("tag", ctypes.c_char_p),
        ("device", ctypes.c_int32),
        ("unused", ctypes.c_uint32),
    ]


_COUNTS = (
    "allocations frees failures out_of_memory live_blocks live_bytes allocated_bytes total_bytes peak_bytes reserved_bytes "
    "peak_reserved_bytes idle_blocks idle_bytes hits misses fallbacks fallback_bytes resizes resized_bytes device_total_bytes "
    "device_free_bytes limit_bytes"
).split()
_SHARES = "hit_rate utilisation fragmentation efficiency".split()
_TRANSFERS = "transfers transfer_bytes transfer_ns transfer_waited_ns".split()


_CARRIED = ("peer_transfers", "peer_bytes", "staged_transfers", "staged_bytes")


class RawStats(ctypes.Structure):
    _fields_ = (
        [(name, ctypes.c_uint64) for name in _COUNTS]
        + [(name, ctypes.c_double) for name in _SHARES]
        + [("backend", ctypes.c_char_p)]
        + [(name, ctypes.c_uint64) for name in _TRANSFERS]
        + [("transfer_overlap", ctypes.c_double)]
        + [(name, ctypes.c_uint64) for name in _CARRIED]
    )


class RawLeaks(ctypes.Structure):
    _fields_ = [
        ("blocks", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("excused_blocks", ctypes.c_uint64),
        ("excused_bytes", ctypes.c_uint64),
    ]


class RawFreed(ctypes.Structure):
    _fields_ = [
        ("blocks", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("left_blocks", ctypes.c_uint64),
        ("left_bytes", ctypes.c_uint64),
    ]


class RawBudget(ctypes.Structure):
    _fields_ = [
        ("bytes", ctypes.c_uint64),
        ("used_bytes", ctypes.c_uint64),
        ("peak_bytes", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("exceeded", ctypes.c_uint64),
        ("how", ctypes.c_int32),
        ("unused", ctypes.c_uint32),
    ]


class RawPressure(ctypes.Structure):
    _fields_ = [
        ("use", ctypes.c_double),
        ("used_bytes", ctypes.c_uint64),
        ("total_bytes", ctypes.c_uint64),
        ("held_bytes", ctypes.c_uint64),
        ("limit_bytes", ctypes.c_uint64),
        ("level", ctypes.c_int32),
        ("device", ctypes.c_int32),
    ]


class RawBufferSpec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("element_bytes", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("least_bytes", ctypes.c_uint64),
        ("most_bytes", ctypes.c_uint64),
        ("growth", ctypes.c_double),
        ("flags", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
    ]


class RawBuffer(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_uint64),
        ("element_bytes", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("capacity", ctypes.c_uint64),
        ("capacity_bytes", ctypes.c_uint64),
        ("most_bytes", ctypes.c_uint64),
        ("resizes", ctypes.c_uint64),
        ("copies", ctypes.c_uint64),
        ("copied_bytes", ctypes.c_uint64),
        ("age_ns", ctypes.c_uint64),
        ("unused_ns", ctypes.c_uint64),
        ("utilisation", ctypes.c_double),
        ("device", ctypes.c_int32),
        ("is_in_place", ctypes.c_int32),
    ]


class RawFrame(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("waited_ns", ctypes.c_uint64),
    ]


class RawDownload(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("most_bytes", ctypes.c_uint64),
        ("started", ctypes.c_uint64),
        ("taken", ctypes.c_uint64),
        ("skipped", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("transfer_ns", ctypes.c_uint64),
        ("waited_ns", ctypes.c_uint64),
        ("overlap", ctypes.c_double),
        ("device", ctypes.c_int32),
        ("unused", ctypes.c_uint32),
    ]


class RawBridge(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("chunk_bytes", ctypes.c_uint64),
        ("started", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("peer_copies", ctypes.c_uint64),
        ("staged_copies", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("transfer_ns", ctypes.c_uint64),
        ("waited_ns", ctypes.c_uint64),
        ("overlap", ctypes.c_double),
        ("from_device", ctypes.c_int32),
        ("to_device", ctypes.c_int32),
        ("way", ctypes.c_int32),
        ("unused", ctypes.c_uint32),
    ]
MODEL_NUMBERS = (
    "layers hidden heads vocab kv_heads head_dim ffn positions window window_layers experts experts_used expert_ffn shared_ffn "
    "dense_layers q_rank kv_rank rope_dim nope_dim value_dim tied plain_ffn learned_positions parameters stored_bytes batch "
    "context chunk devices full_kv_heads full_head_dim full_keys_are_values"
).split()
_ESTIMATED = (
    "parameters active_parameters weights_bytes cache_bytes activations_bytes gradients_bytes master_bytes optimizer_bytes "
    "total_bytes reserve_bytes token_bytes"
).split()


class RawModel(ctypes.Structure):
    _fields_ = (
        [(name, ctypes.c_uint64) for name in MODEL_NUMBERS[:-3]]
        + [(name, ctypes.c_char_p) for name in ("weights", "cache", "optimizer")]
        + [("flags", ctypes.c_uint32), ("unused", ctypes.c_uint32)]
        + [(name, ctypes.c_uint64) for name in MODEL_NUMBERS[-3:]]
    )


class RawEstimate(ctypes.Structure):
    _fields_ = (
        [(name, ctypes.c_uint64) for name in _ESTIMATED]
        + [("device", ctypes.c_int32), ("is_partial", ctypes.c_int32)]
    )


class RawStreams(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("compute", ctypes.c_void_p),
        ("in", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("age_ns", ctypes.c_uint64),
        ("works", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("compute_ns", ctypes.c_uint64),
        ("in_ns", ctypes.c_uint64),
        ("out_ns", ctypes.c_uint64),
        ("busy_ns", ctypes.c_uint64),
        ("compute_use", ctypes.c_double),
        ("in_use", ctypes.c_double),
        ("out_use", ctypes.c_double),
        ("overlap", ctypes.c_double),
        ("device", ctypes.c_int32),
        ("unused", ctypes.c_uint32),
    ]


class RawPrefetch(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("chunk_bytes", ctypes.c_uint64),
        ("started", ctypes.c_uint64),
        ("arrived", ctypes.c_uint64),
        ("failed", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("transfer_ns", ctypes.c_uint64),
        ("waited_ns", ctypes.c_uint64),
        ("overlap", ctypes.c_double),
        ("device", ctypes.c_int32),
        ("unused", ctypes.c_uint32),
    ]


BUFFER_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(RawBuffer), ctypes.c_void_p)
BLOCK_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(RawBlock), ctypes.c_void_p)

PRESSURE_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.POINTER(RawPressure), ctypes.c_int, ctypes.c_void_p)
MEMORY_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_void_p)

# Members in order: result, parameters.
MEMBERS: List[Tuple[str, Any, Tuple[Any, ...]]] = [
    ("is_active", ctypes.c_int, ()),
    ("version", ctypes.c_char_p, ()),
    ("error_text", ctypes.c_char_p, (ctypes.c_int,)),
    ("tag_push", ctypes.c_int, (ctypes.c_char_p,)),
    ("tag_pop", ctypes.c_int, ()),
    ("step", ctypes.c_int, (ctypes.c_char_p,)),
    ("stats", ctypes.c_int, (ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(RawStats), ctypes.c_size_t)),
    ("block_find", ctypes.c_int, (ctypes.c_void_p, ctypes.POINTER(RawBlock), ctypes.c_size_t)),
    ("block_name", ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)),
    ("mark", ctypes.c_int, (ctypes.POINTER(ctypes.c_uint64),)),
    ("visit", ctypes.c_int, (ctypes.POINTER(RawFilter), ctypes.c_size_t, BLOCK_FUNCTION, ctypes.c_void_p)),
    ("leaks", ctypes.c_int,
     (ctypes.c_uint64, BLOCK_FUNCTION, ctypes.c_void_p, ctypes.POINTER(RawLeaks), ctypes.c_size_t)),
    ("report", ctypes.c_int, (ctypes.c_char_p,)),
    ("record_start", ctypes.c_int, (ctypes.c_char_p,)),
    ("record_stop", ctypes.c_int, ()),
    ("pressure", ctypes.c_int, (ctypes.c_int, ctypes.POINTER(RawPressure), ctypes.c_size_t)),
    ("pressure_listen", ctypes.c_int, (PRESSURE_FUNCTION, ctypes.c_void_p, ctypes.c_int)),
    ("memory_listen", ctypes.c_int, (MEMORY_FUNCTION, ctypes.c_void_p, ctypes.c_int)),
    ("trim", ctypes.c_int, (ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))),
    ("limit", ctypes.c_int, (ctypes.c_int, ctypes.c_uint64)),
    ("pool_max", ctypes.c_int, (ctypes.c_int, ctypes.c_uint64)),
    ("batch_begin", ctypes.c_int, ()),
    ("batch_end", ctypes.c_int, ()),
    ("scope_begin", ctypes.c_int, (ctypes.c_char_p,)),
    ("scope_end", ctypes.c_int, (ctypes.POINTER(RawFreed), ctypes.c_size_t)),
    ("keep", ctypes.c_int, (ctypes.c_void_p,)),
    ("budget_set", ctypes.c_int, (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int)),
    ("budget_clear", ctypes.c_int, (ctypes.c_char_p,)),
    ("budget_now", ctypes.c_int, (ctypes.c_char_p, ctypes.POINTER(RawBudget), ctypes.c_size_t)),
    ("buffer_make", ctypes.c_int,
     (ctypes.POINTER(RawBufferSpec), ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint64))),
    ("buffer_find", ctypes.c_int, (ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))),
    ("buffer_ensure", ctypes.c_int,
     (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))),
    ("buffer_use", ctypes.c_int, (ctypes.c_uint64, ctypes.c_uint64)),
    ("buffer_now", ctypes.c_int, (ctypes.c_uint64, ctypes.POINTER(RawBuffer), ctypes.c_size_t)),
    ("buffer_visit", ctypes.c_int, (BUFFER_FUNCTION, ctypes.c_void_p)),
    ("buffer_shrink", ctypes.c_int, (ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))),
    ("buffer_clean", ctypes.c_int, (ctypes.c_uint64, ctypes.c_double, ctypes.POINTER(ctypes.c_uint64))),
    ("buffer_end", ctypes.c_int, (ctypes.c_uint64,)),
    ("download_make", ctypes.c_int, (ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))),
    ("download_start", ctypes.c_int,
     (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))),
    ("download_after", ctypes.c_int, (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)),
    ("download_before", ctypes.c_int, (ctypes.c_uint64, ctypes.c_void_p)),
    ("download_wait", ctypes.c_int,
     (ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(RawFrame), ctypes.c_size_t)),
    ("download_release", ctypes.c_int, (ctypes.c_uint64,)),
    ("download_now", ctypes.c_int, (ctypes.c_uint64, ctypes.POINTER(RawDownload), ctypes.c_size_t)),
    ("download_end", ctypes.c_int, (ctypes.c_uint64,)),
    ("device_pick", ctypes.c_int, (ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32))),
    ("device_alloc", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_void_p))),
    ("bridge_make", ctypes.c_int,
     (ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))),
    ("bridge_copy", ctypes.c_int,
     (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p,
      ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_int32))),
    ("bridge_wait", ctypes.c_int, (ctypes.c_uint64, ctypes.c_uint64)),
    ("bridge_now", ctypes.c_int, (ctypes.c_uint64, ctypes.POINTER(RawBridge), ctypes.c_size_t)),
    ("bridge_end", ctypes.c_int, (ctypes.c_uint64,)),
    ("estimate", ctypes.c_int,
     (ctypes.POINTER(RawModel), ctypes.c_size_t, ctypes.POINTER(RawEstimate), ctypes.c_size_t)),
    ("streams_make", ctypes.c_int, (ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))),
    ("streams_order", ctypes.c_int, (ctypes.c_uint64, ctypes.c_int, ctypes.c_int)),
    ("work_begin", ctypes.c_int, (ctypes.c_uint64, ctypes.c_int)),
    ("work_end", ctypes.c_int, (ctypes.c_uint64, ctypes.c_int)),
    ("streams_reset", ctypes.c_int, (ctypes.c_uint64,)),
    ("streams_now", ctypes.c_int, (ctypes.c_uint64, ctypes.POINTER(RawStreams), ctypes.c_size_t)),
    ("streams_end", ctypes.c_int, (ctypes.c_uint64,)),
    ("prefetch_make", ctypes.c_int, (ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))),
    ("prefetch_start", ctypes.c_int,
     (ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p,
      ctypes.POINTER(ctypes.c_uint64))),
    ("prefetch_before", ctypes.c_int, (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)),
    ("prefetch_stage", ctypes.c_int, (ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32))),
    ("prefetch_wait", ctypes.c_int, (ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))),
    ("prefetch_cancel", ctypes.c_int, (ctypes.c_uint64, ctypes.c_uint64)),
    ("prefetch_now", ctypes.c_int, (ctypes.c_uint64, ctypes.POINTER(RawPrefetch), ctypes.c_size_t)),
    ("prefetch_end", ctypes.c_int, (ctypes.c_uint64,)),
]


class Table(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.CFUNCTYPE(result, *parameters)) for name, result, parameters in MEMBERS
    ]


def _find() -> Optional[Table]:
    try:
        return Table.in_dll(ctypes.CDLL(None), NAME)
    except ValueError:
        return None


_found = _find()


def is_there() -> bool:
    return _found is not None


def member(name: str) -> Optional[Callable[..., Any]]:
    """A function of the table; None without the library, or if it is older than this member."""
    if _found is None or _found.size <= getattr(Table, name).offset:
        return None
    function: Callable[..., Any] = getattr(_found, name)
    return function
