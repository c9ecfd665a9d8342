# SPDX-License-Identifier: MIT
# A program of backward.test: memory of a backward pass, where torch.autograd is a function that waits for a thread of C.
import ctypes, os, sys, threading, time

from torch.autograd.graph import _engine_run_backward as engine

cuda = ctypes.CDLL("libcuda.so.1")
workers = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)

def forward(size):
    assert cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size)) == 0

def backward(size, name=b"pt_autograd_0", run=engine):
    assert run(workers.backward, name, ctypes.c_size_t(size), context) == 0

def train():
    forward(100)
    backward(200)

def others():
    backward(300, b"worker")
    backward(400, run=lambda work, *args: work(*args))

# Two that wait at once: whose work it is, nobody can tell.
def together():
    reading, writing = os.pipe()
    def wait():
        cuda.cuCtxSetCurrent(context)
        forward(50)
        engine(os.read, reading, 1)
    thread = threading.Thread(target=wait)
    thread.start()
    while sys._current_frames()[thread.ident].f_code is not engine.__code__:
        time.sleep(0.001)
    backward(250)
    os.write(writing, b"x")
    thread.join()

train()
others()
if len(sys.argv) > 2:
    together()
print("done")
