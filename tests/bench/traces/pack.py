#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a trace small enough to be kept: `pack.py RAW PACKED.csv.gz`.

RAW is what CUWARDEN_TRACE wrote. Left out are columns that a replay does not read (the function called, the
stream, the time of day). Threads and blocks get numbers by the order in which they appear, those of blocks again
once they are free; times count from the first event and are those of the millisecond in which it fell. Frees of what
the trace has not seen, and allocations that failed, are left out. Nothing else changes: no event is thinned out
and none is moved."""
import csv
import gzip
import heapq
import sys

TICK = 1_000_000


class Numbers:
    """The smallest that is free."""

    def __init__(self):
        self.count = 0
        self.free = []

    def take(self):
        if self.free:
            return heapq.heappop(self.free)
        self.count += 1
        return self.count

    def give(self, number):
        heapq.heappush(self.free, number)


def pack(lines, out):
    threads, blocks, numbers, first = {}, {}, Numbers(), None
    out.write("Thread,Action,Pointer,Size,Device,Kind,Nanoseconds\n")
    for row in csv.DictReader(lines):
        key, action = row["Pointer"], row["Action"]
        if action == "allocate":
            blocks[key] = number = numbers.take()
        elif action == "free" and key in blocks:
            number = blocks.pop(key)
            numbers.give(number)
        else:
            continue
        moment = int(row["Nanoseconds"])
        first = moment if first is None else first
        thread = threads.setdefault(row["Thread"], len(threads))
        out.write(f"{thread},{action},{number:x},{row['Size']},{row['Device']},{row['Kind']},"
                  f"{max(0, moment - first) // TICK * TICK}\n")


def main(raw, packed):
    with open(raw, newline="", encoding="ascii", errors="replace") as lines, \
            open(packed, "wb") as file, \
            gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
        pack(lines, Text(out))


class Text:
    def __init__(self, out):
        self.out = out

    def write(self, text):
        self.out.write(text.encode("ascii"))


if __name__ == "__main__":
    main(*sys.argv[1:])
