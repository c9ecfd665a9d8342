# SPDX-License-Identifier: MIT
# gpu_check.test: a package for the workload cupy.
import ctypes, os, shutil, time
driver = ctypes.CDLL("libcuda.so.1")
float64 = float
preloaded = "libcuwarden" in os.environ.get("LD_PRELOAD", "")
if os.environ.get("FAKE") == "hang":
    with open(os.environ["FAKE_PID"], "w") as file:
        file.write(str(os.getpid()))
    while True:
        time.sleep(1000)
if os.environ.get("FAKE") == "away":
    shutil.rmtree(os.environ["FAKE_RESULTS"], ignore_errors=True)
class Values:
    def __init__(self, value):
        self.value = value
    def __mul__(self, by):
        return Values(self.value * by)
    def __sub__(self, by):
        return Values(self.value - by)
    def __getitem__(self, index):
        return self.value
    def max(self):
        return self.value + (os.environ.get("FAKE") == "differ" and preloaded)
def arange(count, dtype):
    context, block = ctypes.c_void_p(), ctypes.c_uint64()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(8 * count)) == 0
    assert driver.cuMemFree_v2(block) == 0
    return Values(1.0)
class Pool:
    def total_bytes(self):
        return 0
get_default_memory_pool = Pool
