# SPDX-License-Identifier: MIT
# A program of python.test.
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)

def take():
    cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(512))

def wrap(inner):
    def outer():
        inner()
    return outer

for _ in range(30):
    take = wrap(take)
take()
