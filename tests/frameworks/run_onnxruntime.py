# SPDX-License-Identifier: MIT
"""ONNX Runtime without a model: OrtValues to the device and back. `leak`: one that nothing frees."""
import ctypes
import sys

import numpy
import onnxruntime

onnxruntime.preload_dlls()


def upload(values):
    return onnxruntime.OrtValue.ortvalue_from_numpy(values, "cuda", 0)


def leak():
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(upload(numpy.zeros(100000, dtype=numpy.float32))))


for step in range(20):
    values = numpy.arange(1000 + 777 * (step % 7), dtype=numpy.float32)
    block = upload(values)
    print(step, block.device_name(), bool((block.numpy() == values).all()))
if sys.argv[1:] == ["leak"]:
    leak()
