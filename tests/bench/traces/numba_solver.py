#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Conjugate gradients in numba over a mesh that is made finer where it must be: `numba_solver.py SECONDS`.
The vectors of a solve live as long as it; each step of it takes a few that come and go, and what numba's
reductions take. numba keeps what was freed until ten blocks have come together, then frees them in a row."""
import random
import sys

import numpy
from numba import cuda

from pace import FLOPS, Clock, device


def elementwise(*arrays):
    """An expression that makes a new array."""
    out = cuda.device_array_like(arrays[0])
    device.work(0, 8 * (len(arrays) + 1) * arrays[0].size)
    return out


def reduce(array):
    """numba's Reduce: partial sums on the device, and one number back."""
    partial = cuda.device_array(max(1, array.size // 65536), dtype=numpy.float64)
    device.work(0, 8 * array.size)
    return float(partial[:1].copy_to_host()[0])


def solve(cells, nonzero, steps):
    diagonal = cuda.device_array(cells)
    columns, values = cuda.device_array(nonzero, dtype=numpy.int32), cuda.device_array(nonzero)
    right, unknown = cuda.device_array(cells), cuda.device_array(cells)
    residual = elementwise(right, unknown, diagonal)
    direction = elementwise(residual)
    for _ in range(steps):
        product = elementwise(direction, columns, values)
        device.work(0, 12 * nonzero)
        reduce(elementwise(direction, product))
        unknown = elementwise(unknown, direction)
        residual = elementwise(residual, product)
        reduce(elementwise(residual, residual))
        direction = elementwise(residual, direction)
    return unknown


def main(seconds):
    dice, clock = random.Random(3), Clock(float(seconds))
    cells = 1500000
    pinned = cuda.pinned_array(4096)
    while clock.goes_on():
        # Each time step is a solve; every few of them the mesh follows the solution.
        for _ in range(dice.randint(2, 5)):
            unknown = solve(cells, 7 * cells - dice.randrange(1000), dice.randint(12, 40))
            pinned[:] = 0
            unknown[:4096].copy_to_host(pinned)
            device.work(30e-3 * FLOPS)  # assembly on the host
        marked = cuda.device_array(cells, dtype=numpy.int32)
        offsets = cuda.device_array(cells + 1, dtype=numpy.int32)
        cells = max(800000, min(12000000, int(cells * dice.uniform(0.8, 1.35))))
        moved = cuda.device_array(cells)
        device.work(0, 40 * cells)
        del marked, offsets, moved, unknown


if __name__ == "__main__":
    main(*sys.argv[1:])
