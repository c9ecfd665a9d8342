# SPDX-License-Identifier: MIT
"""Asks of its own account, and runs the same without it: cuwarden run -- python session.py

It calls CUDA's runtime itself, so that it needs no package but cuwarden.
"""
import ctypes
import sys

import cuwarden

runtime = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libcudart.so")
runtime.cudaFree.argtypes = [ctypes.c_void_p]


def take(size: int, name: str) -> int:
    block = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(size)) != 0 or block.value is None:
        raise MemoryError(f"{size} bytes")
    cuwarden.name_block(block.value, name)
    return block.value


with cuwarden.tag("model"):
    weights = take(4 << 20, "weights")

mark = cuwarden.mark()
for _ in range(3):
    runtime.cudaFree(take(1 << 20, "scratch"))
    cuwarden.step("iteration")
with cuwarden.tag("cache"):
    cache = take(2 << 20, "keys")

if cuwarden.is_active():
    leaks = cuwarden.leak_check(mark)
    for block in leaks.found:
        print(f"left: {block.bytes} bytes, tag '{block.tag}', name '{block.name}'")
    print(f"since the mark: {leaks.bytes} bytes")
    stats = cuwarden.device_stats(0)
    print(f"live: {stats.live_bytes} bytes, {100 * stats.hit_rate:.0f}% of requests from freed memory")
else:
    print("cuwarden is not active in this process: start it by 'cuwarden run -- PROGRAM'")
runtime.cudaFree(cache)
runtime.cudaFree(weights)
