# SPDX-License-Identifier: MIT
"""Segments of 8 MiB from cudaMalloc, which are never given back, cut into tensors in the order of need."""
import ctypes
import os
import sys
import threading
import time

import torch

SEGMENT = 8 << 20
segments = []
events = []
record = None
most = 0
unseen = threading.Lock()  # while it is held, nobody is told what is held
snapshot_most = None  # `most` as the last snapshot had it
asked_since = 0  # that snapshot: one question belongs to it, with the second one its asker is done with it
runtime = ctypes.CDLL(os.environ.get("STANDIN_RUNTIME", "libcudart.so.13"))


class Segment:
    def __init__(self):
        place = ctypes.c_void_p()
        if runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(SEGMENT)) != 0:
            for observer in torch.observers:
                observer(0, SEGMENT, 0, 0)
            raise MemoryError("CUDA out of memory")
        self.address, self.used, self.tensors = place.value, 0, {}


class Tensor:
    def __init__(self, size, frames):
        global most
        self.segment = next((s for s in segments if s.used + size <= SEGMENT), None)
        if self.segment is None:
            segments.append(Segment())
            self.segment = segments[-1]
        # The first gap that is wide enough.
        taken = sorted((at, at + held) for at, held, _ in self.segment.tensors.values())
        self.place = next(end for end in [0] + [end for _, end in taken]
                          if all(end + size <= at or to <= end for at, to in taken))
        self.segment.used += size
        self.segment.tensors[id(self)] = (self.place, size, frames)
        self.note("alloc", size, frames)
        most = max(most, sum(segment.used for segment in segments))

    def __del__(self):
        _, size, _ = self.segment.tensors.pop(id(self))
        self.segment.used -= size
        self.note("free_completed", size, None)

    def note(self, action, size, frames):
        event = {"action": action, "addr": self.segment.address + self.place, "size": size}
        events.append(dict(event, frames=frames) if frames else event)


def empty(size):
    if not torch.cuda.is_up:
        torch.cuda.init()
    frames, frame = [], sys._getframe(1) if record else None
    while frame:
        code = frame.f_code
        frames.append({"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_name})
        frame = frame.f_back
    return Tensor(size, frames)


def memory_allocated(device):
    return sum(segment.used for segment in segments)


def memory_reserved(device):
    return SEGMENT * len(segments)


def empty_cache():
    pass


def get_allocator_backend():
    return "native"


def memory_stats_as_nested_dict(device):
    global asked_since
    with unseen:
        asked_since += 1
        return {"allocated_bytes": {"all": {"current": memory_allocated(device), "peak": most}}}


def settle():
    """Waits for a snapshot of the most that was held, and for its asker to be done with it. None records: no wait."""
    while record and not (snapshot_most == most and asked_since > 1):
        time.sleep(0.005)


def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=sys.maxsize):
    global record
    if "STANDIN_REFUSES" in os.environ:
        raise RuntimeError("this allocator has no history")
    record = enabled


def _snapshot():
    global snapshot_most, asked_since
    snapshot_most, asked_since = most, 0
    return {"device_traces": [list(events)], "segments": [{
        "device": 0,
        "address": segment.address,
        "total_size": SEGMENT,
        "blocks": [{"address": segment.address + place, "size": size, "state": "active_allocated", "frames": frames}
                   for place, size, frames in segment.tensors.values()] + [{"size": 1, "state": "inactive"}],
    } for segment in segments]}
