#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Photographs through a pipeline in numba: `numba_images.py SECONDS`. Each image goes up, through colour
conversion, blur, edges, a pyramid and a histogram, and a preview of it comes back. The sizes are those of
cameras and telephones, upright or not, some of them cut."""
import random
import sys

import numpy
from numba import cuda

from pace import FLOPS, Clock, device

SIZES = [(4032, 3024), (3840, 2160), (6000, 4000), (4624, 3468), (1920, 1080), (2048, 1536), (5472, 3648)]


def made(height, width, depth=1, dtype=numpy.float32):
    shape = (height, width, depth) if depth > 1 else (height, width)
    array = cuda.device_array(shape, dtype=dtype)
    device.work(0, 3 * array.size * array.dtype.itemsize)
    return array


def blur(height, width, radius):
    kernel = cuda.to_device(numpy.ones(2 * radius + 1, dtype=numpy.float32))
    rows = made(height, width)
    columns = made(height, width)
    device.work(4.0 * height * width * radius, 0)
    del kernel, rows
    return columns


def process(height, width, photograph):
    stream = cuda.stream()
    raw = cuda.to_device(photograph[:height * width * 3], stream=stream)
    linear = made(height, width, 3)
    grey = made(height, width)
    del raw
    smooth = blur(height, width, 5)
    across, down = made(height, width), made(height, width)
    edges = made(height, width)
    del across, down
    counts = cuda.to_device(numpy.zeros(256, dtype=numpy.int32))
    counts.copy_to_host()
    pyramid, level = [], (height, width)
    while min(level) > 64:
        level = (level[0] // 2, level[1] // 2)
        blurred = blur(*level, 2)
        pyramid.append(made(*level))
        del blurred
    del smooth, edges, grey
    preview = made(256, 256 * width // height, 3, numpy.uint8)
    preview.copy_to_host()
    del linear, pyramid, preview, counts


def main(seconds):
    dice, clock = random.Random(4), Clock(float(seconds))
    photograph = numpy.zeros(6000 * 4000 * 3, dtype=numpy.uint8)
    while clock.goes_on():
        camera = dice.choice(SIZES)
        for _ in range(dice.randint(20, 120)):  # an album, most of it from one camera
            width, height = camera if dice.random() < 0.85 else dice.choice(SIZES)
            if dice.random() < 0.3:
                width, height = height, width
            if dice.random() < 0.1:  # cut
                width, height = int(width * dice.uniform(0.4, 1)), int(height * dice.uniform(0.4, 1))
            process(height, width, photograph)
            device.work(25e-3 * FLOPS)  # decoding
            if not clock.goes_on():
                return
        clock.wait_until(clock.now() + dice.expovariate(0.5))


if __name__ == "__main__":
    main(*sys.argv[1:])
