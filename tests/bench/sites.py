#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a report in JSON with very many call sites: sites.py COUNT >FILE. For figures of the command:

    python3 tests/bench/sites.py 100000 >big.json
    for form in text json collapsed pprof perfetto heaptrack torch; do
      /usr/bin/time -f "$form %es %MKiB" cuwarden report --format=$form -o out big.json
    done
"""
import json
import sys

count = int(sys.argv[1])
depth = 20
frames = [{"id": number, "module": 1, "offset": 16 * number, "func": "function_%d" % number,
           "file": "src/part_%d.cc" % (number % 97), "line": number % 1000 + 1}
          for number in range(1, count // 5 + depth)]
stacks = []
sites = []
leaks = []
for number in range(count):
    stacks.append({"id": number + 1, "frames": [(number * step * 7919) % len(frames) + 1
                                                for step in range(1, depth + 1)],
                   "shown": [0, depth]})
    amount = {"count": number % 7 + 1, "bytes": (number % 7 + 1) * (number % 1013 + 1)}
    sites.append({"id": number, "key": "%08x" % (number * 2654435761 % (1 << 32)), "stack": number + 1,
                  "api": "cudaMalloc", "kind": "device", "device": 0, "class": "lost", "live": amount,
                  "held": amount["bytes"], "total": {"count": 10, "bytes": amount["bytes"] + 4096},
                  "peak": amount, "at_device_peak": amount, "reclaimed": {"count": 0, "bytes": 0},
                  "frees": 3, "failed": 0, "oom": 0, "first_ns": number, "last_ns": number + 1000})
    if number < 10000:
        leaks.append({"site": number, "ptr": hex(0x7f0000000000 + 4096 * number), "bytes": 100,
                      "held": 512, "t_ns": number, "tid": 1})
total = sum(site["live"]["bytes"] for site in sites)
report = {
    "schema": "cuwarden-report/1",
    "tool": {"name": "cuwarden", "version": "0"},
    "process": {"pid": 1, "exe": "/bin/train", "argv": ["train"], "start_ns": 1, "duration_ns": 10**10,
                "exit": {"kind": "exit", "code": 0}},
    "devices": [{"ordinal": 0, "name": "GPU", "total": 1 << 36, "live": {"count": 1, "bytes": total},
                 "held": total, "allocs": 1, "frees": 0, "peak": {"bytes": total, "t_ns": 10**9}}],
    "modules": [{"id": 1, "path": "/bin/train", "build_id": "00"}],
    "frames": frames, "stacks": stacks, "sites": sites, "leaks": leaks,
    "regrowth": [], "events": [], "cuda": {}, "kinds": {}, "pool": {}, "pressure": {}, "tags": [], "old": {},
    "growth": {}, "timeline": {}, "suppressions": [], "oom_accounts": [], "invalid_frees": 0, "diagnostics": [],
    "summary": {"leaked_bytes": total, "leak_sites": count, "leaked_blocks": 0, "peak_bytes": total, "allocs": 1, "frees": 0,
                "failed": 0, "pool_hits": 0, "pool_misses": 0, "invalid_frees": 0, "fatal_errors": 0, "fallbacks": 0,
                "held_bytes": 0},
}
json.dump(report, sys.stdout, separators=(",", ":"))
