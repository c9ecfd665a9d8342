#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a program in CuPy takes and frees without CuPy's own pool: `cupy_like.py SECONDS`. CuPy does not run on
the simulated GPU. This has its way with memory: an array is a cudaMalloc of its size in multiples of 512
bytes, each expression makes one, and it is freed when Python has no more use for it; reductions, sorts and
transforms take scratch memory. The program looks at recordings of varying length, clusters what it finds,
and keeps a table that grows."""
import ctypes
import random
import sys

from pace import FLOPS, Clock, device

runtime = ctypes.CDLL("libcudart.so.13")
runtime.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
runtime.cudaFree.argtypes = [ctypes.c_void_p]


class Memory:
    def __init__(self, size):
        self.pointer = ctypes.c_void_p()
        code = runtime.cudaMalloc(ctypes.byref(self.pointer), max(512, (size + 511) // 512 * 512))
        if code != 0:
            raise MemoryError(f"cudaMalloc: {code}")

    def __del__(self):
        runtime.cudaFree(self.pointer)


class Array:
    """Of one dimension; which numbers are in it does not matter."""

    def __init__(self, count, width=4):
        self.count, self.width = int(count), width
        self.memory = Memory(self.count * width)

    def made(self, others=(), count=None, width=None):
        out = Array(self.count if count is None else count, width or self.width)
        device.work(0, self.count * self.width * (2 + len(others)))
        return out

    def binary(self, other):
        return self.made((other,) if isinstance(other, Array) else ())

    __add__ = __sub__ = __mul__ = __truediv__ = __pow__ = __radd__ = __rmul__ = __rsub__ = binary

    def __gt__(self, other):
        return self.made(width=1)

    def unary(self):
        return self.made()

    def sum(self):
        out = Array(1, 8)
        scratch = Memory(8 * max(1, self.count // 4096))
        device.work(0, self.count * self.width)
        del scratch
        return out

    def item(self):
        """To the host, which waits."""

    def sort(self):
        keys, scratch = self.made(), Memory(self.count * self.width + self.count // 8 + 65536)
        device.work(0, 10 * self.count * self.width)
        del keys, scratch

    def select(self, share):
        """By a mask: positions by a prefix sum, and what was found."""
        mask = self > 0
        places = mask.made(width=8)
        scratch = Memory(places.count // 64 + 8192)
        total = Array(1, 8)
        total.item()
        del scratch
        out = self.made(count=self.count * share)
        del places
        return out

    def transform(self):
        """A Fourier transform: complex in, complex out, an area to work in."""
        complexes = self.made(width=8)
        work = Memory(8 * self.count)
        out = complexes.made()
        device.work(5.0 * self.count * 24, 16 * self.count)
        del work
        return out


def spectrum(dice, count):
    """One recording."""
    raw = Array(count)
    mean = raw.sum() * (1.0 / count)
    centred = raw - mean.item()
    window = Array(count)
    windowed = centred * (0.54 - 0.46 * window)
    power = windowed.transform()
    power = power * power
    level = power.made(width=4).unary() + 1e-12
    level = 10 * level.unary()
    level.sum().item()
    peaks = level.select(dice.uniform(0.002, 0.02))
    peaks.sort()
    return peaks


def cluster(points, centres=16):
    """k-means in as many rounds as it takes."""
    centre = Array(centres * 4)
    for _ in range(6):
        distance = Array(points.count * centres)
        difference = distance - points
        distance = difference * difference
        device.work(0, 12.0 * distance.count)
        label = Array(points.count)
        for _ in range(2):
            (label > 0).made(width=4).sum()
        centre = centre * 0.5 + centre
    return label


def main(seconds):
    dice, clock = random.Random(5), Clock(float(seconds))
    table, found = Array(1024), 0
    while clock.goes_on():
        count = 1 << 21  # what the instrument records at a time
        if dice.random() < 0.3:  # until it was stopped
            count = int(dice.lognormvariate(14.3, 0.6))
        peaks = spectrum(dice, count)
        found += peaks.count
        both = Array(table.count + peaks.count)  # concatenate
        device.work(0, 8 * both.count)
        table = both
        if found > 400000:
            cluster(table)
            table, found = Array(1024), 0
        device.work(dice.uniform(20e-3, 60e-3) * FLOPS)  # reading the next one
        del peaks, both


if __name__ == "__main__":
    main(*sys.argv[1:])
