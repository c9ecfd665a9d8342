# SPDX-License-Identifier: MIT
# gpu_bench.test: what the training loop asks of a package torch.
import ctypes, os, sys
driver = ctypes.CDLL("libcuda.so.1")
is_cached = "PYTORCH_NO_CUDA_MEMORY_CACHING" not in os.environ
is_preloaded = "libcuwarden" in os.environ.get("LD_PRELOAD", "")
kept = []
class Anything:
    def __call__(self, *words, **more):
        return self
    def __getattr__(self, name):
        return Anything()
    def is_available(self):
        context = ctypes.c_void_p()
        assert driver.cuInit(0) == 0
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxSetCurrent(context) == 0
        return os.environ.get("FAKE") != "none"
    def synchronize(self):
        block = ctypes.c_uint64()
        for _ in range(0 if kept else 3):
            assert driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 20)) == 0
            if is_cached:
                kept.append(block.value)
            else:
                assert driver.cuMemFree_v2(block) == 0
    def item(self):
        return 0.5 + (os.environ.get("FAKE") == "differ" and is_preloaded)
cuda = Anything()
cuda.is_available, cuda.synchronize = Anything.is_available.__get__(cuda), Anything.synchronize.__get__(cuda)
cross = Anything()
cross.item = Anything.item.__get__(cross)
sys.modules["torch"] = module = Anything()
module.cuda = cuda
module.nn = Anything()
module.nn.functional = Anything()
module.nn.functional.cross_entropy = lambda *words: cross
