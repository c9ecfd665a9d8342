# SPDX-License-Identifier: MIT
"""PyCUDA without a kernel: blocks, arrays in pinned memory, its memory pool."""
import numpy
import pycuda.autoinit
import pycuda.driver
import pycuda.tools

pool = pycuda.tools.DeviceMemoryPool()
for step in range(20):
    values = numpy.arange(1000 + 777 * (step % 7), dtype=numpy.int32)
    block = pool.allocate(values.nbytes) if step % 2 else pycuda.driver.mem_alloc(values.nbytes)
    answer = pycuda.driver.pagelocked_empty_like(values)
    pycuda.driver.memcpy_htod(block, values)
    pycuda.driver.memcpy_dtoh(answer, block)
    print(step, bool((answer == values).all()))
