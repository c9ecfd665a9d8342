# SPDX-License-Identifier: MIT
"""A buffer that grows; without cuwarden there is none, and this says so: cuwarden run -- python buffers.py"""
import ctypes
import sys

import cuwarden

runtime = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libcudart.so")
runtime.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
runtime.cudaFree(None)  # a context, for the buffer

first = (ctypes.c_float * 3000)(*[1.5] * 3000)
back = (ctypes.c_float * 3000)()
try:
    with cuwarden.Buffer.preset(cuwarden.Preset.POSITIONS, "positions") as positions:
        runtime.cudaMemcpy(positions.ensure_capacity(1000), first, 12000, 1)
        runtime.cudaMemcpy(back, positions.ensure_capacity(1000000), 12000, 2)
        print(f"kept: {'all' if back[:] == first[:] else 'not all'}, used: {positions.state().utilisation:.2f}")
        positions.ensure_capacity(1 << 30)
except cuwarden.Error as error:
    print(f"{error.code.name}: {error}")
