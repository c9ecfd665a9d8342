# SPDX-License-Identifier: MIT
"""Dr.Jit without a kernel: arrays to the device and back. `leak`: one that nothing frees."""
import ctypes
import sys

import drjit
from drjit.cuda import Float


def leak():
    values = Float([1.0] * 100000)
    drjit.eval(values)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(values))


for step in range(20):
    values = Float([float(i) for i in range(1000 + 100 * step)])
    print(step, len(values), values[10])
if sys.argv[1:] == ["leak"]:
    leak()
