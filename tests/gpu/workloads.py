#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Python programs do on a GPU, small: `workloads.py NAME` prints numbers that must be the same with
and without the library. Exit status 77 and a line why where a package or a GPU for it is missing.
`workloads.py list` prints the names; `workloads.py settings NAME` the environment that it wants."""
import os
import sys

STEPS = 8


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


def model_of(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()


def train(torch, batches):
    model = model_of(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.6f}")
        big = torch.full((1 << 20,), loss.item(), device="cuda")  # comes and goes
        del big


def batch(torch, index):
    generator = torch.Generator().manual_seed(index)
    return (torch.randn(32, 64, generator=generator),
            torch.randint(0, 10, (32,), generator=generator))


def torch_train():
    torch = torch_on_gpu()
    train(torch, [batch(torch, i) for i in range(STEPS)])


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
    for step in range(STEPS):
        still.fill_(step)
        graph.replay()
        print(f"sum {result.item():.1f}")


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
    for method in ("fork", "spawn"):
        print(method)
        torch.manual_seed(2)
        train(torch, DataLoader(Numbers(), batch_size=None, num_workers=2, pin_memory=True,
                                multiprocessing_context=method))


def cupy():
    cupy_ = need("cupy")
    try:
        values = cupy_.arange(1 << 16, dtype=cupy_.float64)
    except Exception as error:
        missing(f"cupy: {error}")
    for step in range(STEPS):
        values = values * 1.5 - step
        print(f"{float(values[1000]):.6f} {float(values.max()):.6f}")
    cupy_.get_default_memory_pool().free_all_blocks()


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


def triton():
    torch = torch_on_gpu()
    need("triton")
    import triton_add
    for step in range(STEPS):
        a = torch.arange(10000, device="cuda", dtype=torch.float32)
        b = torch.full_like(a, step)
        print(f"{triton_add.add(a, b).double().sum().item():.1f}")


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


WORKLOADS = {
    "torch_train": (torch_train, ""),
    "torch_no_cache": (torch_train, "PYTORCH_NO_CUDA_MEMORY_CACHING=1"),
    "torch_expandable": (torch_train, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
    "torch_async": (torch_train, "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"),
    "torch_graph": (torch_graph, ""),
    "torch_workers": (torch_workers, ""),
    "cupy": (cupy, ""),
    "numba": (numba, ""),
    "jax": (jax, "XLA_PYTHON_CLIENT_PREALLOCATE=false"),
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
