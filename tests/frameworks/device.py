# SPDX-License-Identifier: MIT
"""Device memory by the driver's own functions, for programs whose framework is none of CUDA's."""
import ctypes

driver = ctypes.CDLL("libcuda.so.1")


def check(code):
    if code:
        raise RuntimeError(f"the driver says {code}")


def start():
    """Once in each process that uses the device."""
    context = ctypes.c_void_p()
    check(driver.cuInit(0))
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(driver.cuCtxSetCurrent(context))


def allocate(size):
    block = ctypes.c_uint64()
    check(driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)))
    return block


def free(block):
    check(driver.cuMemFree_v2(block))


def work(rounds=20):
    """Blocks that come and go, and hold what was written."""
    total = 0
    for step in range(rounds):
        block = allocate(4096 * (step + 1))
        answer = (ctypes.c_uint32 * 1024)()
        check(driver.cuMemsetD32_v2(block, step, ctypes.c_size_t(1024)))
        check(driver.cuMemcpyDtoH_v2(answer, block, ctypes.c_size_t(4096)))
        total += sum(answer)
        free(block)
    return total
