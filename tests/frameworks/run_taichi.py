# SPDX-License-Identifier: MIT
"""Taichi, whose library is opened with RTLD_DEEPBIND: only DEEPBIND=patch brings its calls to us."""
import numpy
import taichi

taichi.init(arch=taichi.cuda, log_level=taichi.ERROR, device_memory_GB=0.1, offline_cache=False)
for step in range(10):
    array = taichi.ndarray(taichi.f32, shape=1000 + step)
    array.from_numpy(numpy.arange(1000 + step, dtype=numpy.float32))
    print(step, array.shape)
