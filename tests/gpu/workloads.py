#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Python programs do on a GPU, small: `workloads.py NAME` prints numbers that must be the same with
and without the library. Exit status 77 and a line why where a package or a GPU for it is missing.
`workloads.py list` prints the names; `workloads.py settings NAME` the environment that it wants.

What a framework's own counters say goes to the file CLAIMS.PID, where CLAIMS is set: expressions for
tests/e2e/claims.py that must hold of the report of that process. On the simulated GPU kernels do
nothing: what they compute is not printed, and there is no cuBLAS."""
import os
import sys

STEPS = 8
SIMULATED = "Simulated GPU"

# Of a site s, for claims.
OF_TORCH = 'any("CUDACachingAllocator" in f for f in functions(s))'
OF_CUPY = 's.get("class") == "cache"'
LIVE_BYTES = 's["live"]["bytes"]'
LIVE_BLOCKS = 's["live"]["count"]'
ALL_BLOCKS = 's["total"]["count"]'
FREES = 's["frees"]'
FAILED = 's["failed"]'


def claim(expression):
    path = os.environ.get("CLAIMS")
    if path:
        with open(f"{path}.{os.getpid()}", "a", encoding="utf-8") as file:
            print(expression, file=file)


def total_of(value, condition):
    """The sum over the sites of device 0 that count and meet the condition."""
    return (f'sum({value} for s in r["sites"] if s["device"] == 0 '
            f'and s["kind"] not in UNCOUNTED_KINDS and ({condition}))')


def missing(why):
    print("SKIP: " + " ".join(str(why).split())[:160])
    sys.exit(77)


def need(name):
    try:
        return __import__(name)
    except Exception as error:  # a broken package raises anything
        missing(f"{name}: {type(error).__name__}: {error}")


def torch_on_gpu():
    torch = need("torch")
    if not torch.cuda.is_available():
        missing("torch finds no GPU")
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def is_simulated(torch):
    return torch.cuda.get_device_name(0).startswith(SIMULATED)


def computed(torch, value, digits=6):
    """What a kernel has computed, as text."""
    return "?" if is_simulated(torch) else f"{value:.{digits}f}"


def claim_torch(torch):
    """What PyTorch counts on device 0, at the end of a workload; it gives nothing back when it exits."""
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    backend = torch.cuda.get_allocator_backend()
    peak = 'next(d["peak"]["bytes"] for d in r["devices"] if d["ordinal"] == 0)'
    others = total_of('s["peak"]["bytes"]', f"not {OF_TORCH}")
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") == "1":
        claim('not any(s.get("class") == "cache" and s["device"] == 0 for s in r["sites"])')
        return
    if backend == "cudaMallocAsync":  # it counts multiples of 512 bytes
        counted = stats["allocated_bytes.all.peak"]
        claim(f"0.9 * {counted} <= {peak} <= {counted} + {others}")
        return
    reserved = stats["reserved_bytes.all.peak"]
    claim(f"{peak} - {others} <= {reserved} <= {peak}")
    claim(f'{total_of(LIVE_BYTES, OF_TORCH)} == {stats["reserved_bytes.all.current"]}')
    if stats["segment.all.allocated"] == 0:  # expandable segments: one has many blocks
        return
    claim(f'{total_of(LIVE_BLOCKS, OF_TORCH)} == {stats["segment.all.current"]}')
    claim(f'{total_of(ALL_BLOCKS, OF_TORCH)} == {stats["num_device_alloc"]}')
    claim(f'{total_of(FREES, OF_TORCH)} == {stats["num_device_free"]}')
    # Each time it was refused it gave back what it kept, and asked once more.
    claim(f'{total_of(FAILED, OF_TORCH)} == {stats["num_alloc_retries"] + stats["num_ooms"]}')


def model_of(torch):
    nn = torch.nn
    if not is_simulated(torch):
        return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()

    class First(nn.Module):
        def forward(self, values):
            return values[:, :10] * 2

    return nn.Sequential(nn.LayerNorm(64), nn.ReLU(), First()).cuda()


def train(torch, batches):
    model = model_of(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        print(f"loss {computed(torch, loss.item())}")
        big = torch.full((1 << 20,), loss.item(), device="cuda")  # comes and goes
        del big


def batch(torch, index):
    generator = torch.Generator().manual_seed(index)
    return (torch.randn(32, 64, generator=generator),
            torch.randint(0, 10, (32,), generator=generator))


def torch_train():
    torch = torch_on_gpu()
    train(torch, [batch(torch, i) for i in range(STEPS)])
    claim_torch(torch)


def torch_copies():
    """No kernel: whatever is copied must come back, from the stream of another too."""
    torch = torch_on_gpu()
    side = torch.cuda.Stream()
    for step in range(60):
        source = torch.arange(1000 + 7777 * (step % 13), dtype=torch.float64)
        first = source.pin_memory().to("cuda", non_blocking=True)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            second = first.clone()
            first.record_stream(side)
        del first
        other = torch.empty_like(source, device="cuda")  # not where the copy still reads
        other.copy_(source.flip(0))
        side.synchronize()
        print(step, int(second.cpu().sum()), bool((other.cpu() == source.flip(0)).all()))
        del second, other
        if step % 20 == 19:
            torch.cuda.empty_cache()
    claim_torch(torch)


def torch_oom():
    """What is refused, and what is granted once the cache was given back."""
    torch = torch_on_gpu()
    available, total = torch.cuda.mem_get_info()
    part = min(available // 8, 1 << 28)
    kept = [torch.empty(part, dtype=torch.uint8, device="cuda") for _ in range(4)]
    torch.cuda.set_per_process_memory_fraction(1.0)
    for _ in range(3):
        try:
            torch.empty(2 * total, dtype=torch.uint8, device="cuda")
            print("granted")
        except torch.cuda.OutOfMemoryError:
            print("refused")
    kept.clear()
    whole = torch.empty(6 * part, dtype=torch.uint8, device="cuda")
    print(whole.numel() == 6 * part)
    del whole
    claim_torch(torch)


def torch_leak():
    """Tensors that nothing frees, not even the end of the interpreter."""
    import ctypes
    torch = torch_on_gpu()
    torch.zeros(1, device="cuda")
    sizes = (1000, 200000, 3 << 20)
    for size in sizes:
        leak(torch, ctypes, size)
    print(len(sizes))
    claim(f"live('leak') == ({len(sizes)}, {sum(sizes)})")
    claim("site('leak')['class'] in ('lost', 'growing')")
    claim("functions(site('leak')).index('leak') < functions(site('leak')).index('torch_leak')")
    claim_torch(torch)


def leak(torch, ctypes, size):
    ctypes.pythonapi.Py_IncRef(
        ctypes.py_object(torch.empty(size, dtype=torch.uint8, device="cuda")))


def torch_graph():
    torch = torch_on_gpu()
    still = torch.zeros(1024, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            (still * 2 + 1).sum()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = (still * 2 + 1).sum()
        copy = still.clone()
    for step in range(STEPS):
        still.copy_(torch.full((1024,), float(step)))
        graph.replay()
        print(f"sum {computed(torch, result.item(), 1)} copied {copy.cpu().sum().item():.1f}")
    claim_torch(torch)


class Numbers:
    """What workers load; a class of the module, so that spawned ones find it."""

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        import torch
        return batch(torch, index)


def torch_workers():
    torch = torch_on_gpu()
    from torch.utils.data import DataLoader
    torch.zeros(1, device="cuda")
    for method in ("fork", "spawn", "forkserver"):
        print(method)
        torch.manual_seed(2)
        train(torch, DataLoader(Numbers(), batch_size=None, num_workers=2, pin_memory=True,
                                multiprocessing_context=method))
    claim_torch(torch)


def answer(tensors, answers):
    tensor = tensors.get()
    answers.put(tensor.cpu().sum().item())
    tensor.copy_(torch_on_gpu().full((1000,), 7.0))
    torch_on_gpu().cuda.synchronize()
    answers.put("written")
    tensors.get()


def torch_shared():
    """A tensor that another process reads and writes."""
    torch = torch_on_gpu()
    context = torch.multiprocessing.get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    other = context.Process(target=answer, args=(tensors, answers))
    other.start()
    tensor = torch.arange(1000.0).cuda()
    tensors.put(tensor)
    print(answers.get(), answers.get(), tensor.cpu().sum().item())
    tensors.put(None)
    other.join()
    print(other.exitcode)
    del tensor
    torch.cuda.ipc_collect()
    claim_torch(torch)


def cupy():
    cupy_ = need("cupy")
    try:
        values = cupy_.arange(1 << 16, dtype=cupy_.float64)
    except Exception as error:
        missing(f"cupy: {error}")
    for step in range(STEPS):
        values = values * 1.5 - step
        print(f"{float(values[1000]):.6f} {float(values.max()):.6f}")
    pool = cupy_.get_default_memory_pool()
    del values
    claim(f'{total_of(LIVE_BYTES, OF_CUPY)} == {pool.total_bytes()}')


def numba():
    need("numba")
    try:
        import numpy
        from numba import cuda
        if not cuda.is_available():
            missing("numba finds no GPU")
    except ImportError as error:
        missing(f"numba: {error}")

    @cuda.jit
    def twice(values):
        index = cuda.grid(1)
        if index < values.size:
            values[index] = values[index] * 2 + index

    for step in range(STEPS):
        values = cuda.to_device(numpy.full(4096, step, dtype=numpy.int64))
        twice[32, 128](values)
        print(int(values.copy_to_host().sum()))


def numba_copies():
    """No kernel: the driver's calls of numba alone."""
    need("numba")
    try:
        import numpy
        from numba import cuda
        if not cuda.is_available():
            missing("numba finds no GPU")
    except ImportError as error:
        missing(f"numba: {error}")
    for step in range(60):
        values = numpy.arange(1000 + 7777 * (step % 13))
        first = upload(cuda, values)
        second = cuda.device_array_like(values)
        second.copy_to_device(first)
        print(step, bool((second.copy_to_host() == values).all()))
    pinned = cuda.pinned_array(1000)
    pinned[:] = 3
    print(int(cuda.to_device(pinned).copy_to_host().sum()))
    claim('sum(s["total"]["count"] for s in sites("upload")) == 60')


def upload(cuda, values):
    return cuda.to_device(values)


def jax():
    jax_ = need("jax")
    import jax.numpy as jnp
    if jax_.default_backend() != "gpu":
        missing("jax finds no GPU")
    step = jax_.jit(lambda x: jnp.tanh(x) * 0.5 + x)
    x = jnp.linspace(-1.0, 1.0, 4096)
    for _ in range(STEPS):
        x = step(x)
        print(f"{float(x[10]):.6f} {float(x[-1]):.6f}")
    stats = jax_.local_devices()[0].memory_stats() or {}
    peak = 'next(d["peak"]["bytes"] for d in r["devices"] if d["ordinal"] == 0)'
    if "peak_bytes_in_use" in stats:
        claim(f'{peak} >= {stats["peak_bytes_in_use"]}')
    if os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR") == "platform":
        claim(f"{total_of(ALL_BLOCKS, 'True')} >= {STEPS}")


def triton():
    torch = torch_on_gpu()
    need("triton")
    import triton_add
    for step in range(STEPS):
        a = torch.arange(10000, device="cuda", dtype=torch.float32)
        b = torch.full_like(a, step)
        print(computed(torch, triton_add.add(a, b).double().sum().item(), 1))
    claim_torch(torch)


def torch_compile():
    """Compiled anew in each run, by processes of its own: no cache of another's."""
    import tempfile
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=cache, TRITON_CACHE_DIR=cache)
        torch = torch_on_gpu()
        step = torch.compile(lambda values, factor: torch.relu(values * factor - 1).sum(), dynamic=True)
        for size in (1000, 4000):
            values = torch.ones(size, device="cuda", requires_grad=True)
            result = step(values, 3)
            result.backward()
            print(size, computed(torch, result.item(), 1), tuple(values.grad.shape))
        claim_torch(torch)


def onnxruntime():
    runtime = need("onnxruntime")
    if "CUDAExecutionProvider" not in runtime.get_available_providers():
        missing("this onnxruntime is without CUDA")
    onnx = need("onnx")
    numpy = need("numpy")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    shape = [64, 64]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])], "small",
        [helper.make_tensor_value_info("x", kind, shape)], [helper.make_tensor_value_info("z", kind, shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])
    if session.get_providers()[0] != "CUDAExecutionProvider":
        missing("onnxruntime does not take the GPU")
    for step in range(STEPS):
        x = numpy.full(shape, step / 4, dtype=numpy.float32)
        print(f"{float(session.run(None, {'x': x})[0].sum()):.2f}")


NO_CACHE = "PYTORCH_NO_CUDA_MEMORY_CACHING=1"
EXPANDABLE = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
ASYNC = "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"
NO_PREALLOCATION = "XLA_PYTHON_CLIENT_PREALLOCATE=false"

WORKLOADS = {
    "torch_train": (torch_train, ""),
    "torch_no_cache": (torch_train, NO_CACHE),
    "torch_leak": (torch_leak, NO_CACHE),
    "torch_oom": (torch_oom, ""),
    "torch_copies_no_cache": (torch_copies, NO_CACHE),
    "torch_expandable": (torch_train, EXPANDABLE),
    "torch_async": (torch_train, ASYNC),
    "torch_graph": (torch_graph, ""),
    "torch_workers": (torch_workers, ""),
    "torch_shared": (torch_shared, ""),
    "torch_copies": (torch_copies, ""),
    "torch_copies_async": (torch_copies, ASYNC),
    "torch_compile": (torch_compile, ""),
    "cupy": (cupy, ""),
    "numba": (numba, ""),
    "numba_copies": (numba_copies, ""),
    "jax": (jax, NO_PREALLOCATION),
    "jax_platform": (jax, NO_PREALLOCATION + " XLA_PYTHON_CLIENT_ALLOCATOR=platform"),
    "triton": (triton, ""),
    "onnxruntime": (onnxruntime, ""),
}


def main(arguments):
    if arguments == ["list"]:
        print("\n".join(WORKLOADS))
    elif len(arguments) == 2 and arguments[0] == "settings" and arguments[1] in WORKLOADS:
        print(WORKLOADS[arguments[1]][1])
    elif len(arguments) == 1 and arguments[0] in WORKLOADS:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        WORKLOADS[arguments[0]][0]()
    else:
        sys.exit("workloads.py: one of these, please: list " + " ".join(WORKLOADS))


if __name__ == "__main__":
    main(sys.argv[1:])
