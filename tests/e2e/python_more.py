# SPDX-License-Identifier: MIT
# A program of python.test.
import ctypes, os, sys, threading

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)

def work():
    block = ctypes.c_uint64()
    cuda.cuCtxSetCurrent(context)
    for _ in range(100):
        cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(512))
        cuda.cuMemFree_v2(block)
    cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(512))

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if sys.argv[1] == "_exit":
    os._exit(6)
raise RuntimeError("the end")
