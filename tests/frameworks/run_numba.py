# SPDX-License-Identifier: MIT
"""numba without a kernel: arrays there, on the device, and back."""
import numpy
from numba import cuda


def upload(values):
    return cuda.to_device(values)


for step in range(60):
    values = numpy.arange(1000 + 777 * (step % 13))
    first = upload(values)
    second = cuda.device_array_like(values)
    second.copy_to_device(first)
    print(step, bool((second.copy_to_host() == values).all()))
pinned = cuda.pinned_array(1000)
pinned[:] = 3
print(int(upload(pinned).copy_to_host().sum()))
