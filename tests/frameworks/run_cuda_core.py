# SPDX-License-Identifier: MIT
"""cuda.core: stream-ordered memory of its pools. `leak`: a buffer that nothing frees."""
import ctypes
import sys

from cuda.core import Device

device = Device(0)
device.set_current()
stream = device.create_stream()


def leak():
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(device.memory_resource.allocate(100000, stream=stream)))


for step in range(20):
    buffer = device.memory_resource.allocate(4096 * (step + 1), stream=stream)
    print(step, buffer.size)
    buffer.close(stream)
stream.sync()
if sys.argv[1:] == ["leak"]:
    leak()
