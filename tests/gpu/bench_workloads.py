#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole Python programs for bench.py: `bench_workloads.py NAME [ms=N] [repeats=N] [steps=N]`.

Repeats of so many steps until both the time and the count are reached. Prints "seconds X" for each
repeat and "checksum X", which must be the same whoever gives out the memory; then "ready", does it
once more when a line came on standard input, says "done" and ends after another line. Exit status 77
and a line why where a package or a GPU for it is missing."""
import os
import sys
import time

from workloads import torch_on_gpu

WIDTH, LAYERS, BATCH, CLASSES = 1024, 8, 256, 128


def torch_model(torch):
    """Many layers of moderate size: a step takes and frees some hundred blocks of 0.5 to 4 MiB, as the
    training of most networks does, and few kernels are so long that they hide it."""
    nn = torch.nn
    layers = []
    for _ in range(LAYERS):
        layers += [nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES)).cuda()


def torch_train(steps):
    """Yields the loss after so many steps of training, over and over."""
    torch = torch_on_gpu()
    torch.utils.deterministic.fill_uninitialized_memory = False  # it would be a kernel for each allocation
    model = torch_model(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    generator = torch.Generator().manual_seed(1)
    batches = [(torch.randn(BATCH, WIDTH, generator=generator).cuda(),
                torch.randint(0, CLASSES, (BATCH,), generator=generator).cuda()) for _ in range(4)]
    while True:
        for step in range(steps):
            inputs, labels = batches[step % len(batches)]
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()
        yield loss.item()


WORKLOADS = {"torch_train": torch_train}


def main(arguments):
    numbers = {"ms": 1500, "repeats": 3, "steps": 20}
    if not arguments or arguments[0] not in WORKLOADS:
        sys.exit("bench_workloads.py: one of these, please: " + " ".join(WORKLOADS))
    for word in arguments[1:]:
        name, _, value = word.partition("=")
        if name not in numbers or not value.isdigit():
            sys.exit(f"bench_workloads.py: there is no word {word}")
        numbers[name] = int(value)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    work = WORKLOADS[arguments[0]](numbers["steps"])
    next(work)  # what is compiled and loaded at the first use
    start, results = time.monotonic(), []
    while len(results) < numbers["repeats"] or time.monotonic() - start < numbers["ms"] / 1e3:
        before = time.monotonic()
        results.append(next(work))
        print(f"seconds {time.monotonic() - before:.9f}", flush=True)
    print(f"checksum {results[numbers['repeats'] - 1]:.6f}")
    print("ready", flush=True)
    sys.stdin.readline()
    next(work)
    print("done", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1:])
