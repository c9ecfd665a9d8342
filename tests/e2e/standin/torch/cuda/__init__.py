# SPDX-License-Identifier: MIT
"""Initialises late, as PyTorch does: what is registered before is called then."""
queued = []
is_up = False


def _lazy_call(function):
    if is_up:
        function()
    else:
        queued.append(function)


def init():
    global is_up
    is_up = True
    while queued:
        queued.pop(0)()


def is_initialized():
    return is_up


def device_count():
    return 1


from . import memory  # noqa: E402
from .memory import (  # noqa: E402, F401
    empty, empty_cache, get_allocator_backend, memory_allocated, memory_reserved, memory_stats_as_nested_dict)
