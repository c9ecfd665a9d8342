# SPDX-License-Identifier: MIT
"""Writes a report in JSON of a program that never ran: html_report.py SITES FILE [END], which is
"exit" unless told. Its names try to break out of the page, and its numbers are easy to foretell: site i lives under outer frame i % 40."""
import json
import sys

HOSTILE = ["</script><img src=x onerror=hit()>", "<!--<script>hit()</script>", 'quote"back\\slash', "tab\tand\nline",
           "<b>bold</b>", "${hit()}", "\u2028\u2029\ufeff", "x" * 3000]
MIB = 1 << 20
GIB = 1 << 30
SECOND = 10**9
LENGTH = 100 * SECOND
OUTER = 40
FRAMEWORK = 3  # frames of one, in the stack of the second site


def frames_of(sites):
    frames = [{"id": 1, "module": 1, "offset": 16, "func": "main", "file": "main.cc", "line": 3}]
    for i in range(OUTER):
        frames.append({"id": 2 + i, "module": 1 + i % 3, "offset": 32 + i, "func": f"outer_{i}", "file": "outer.py" if i % 2 else "outer.cc",
                       "line": 10 + i, **({"lang": "python"} if i % 2 else {})})
    frames.append({**frames[0], "id": 2 + OUTER + sites, "offset": 24, "line": 4}) # another call in main
    for i in range(sites):
        name = HOSTILE[i] if i < len(HOSTILE) else f"caller_{i}(float*, unsigned long)"
        frames.append({"id": 2 + OUTER + i, "module": 1 + i % 3, "offset": i, "func": name, "file": HOSTILE[i % len(HOSTILE)] if i < 8 else "caller.cu",
                       "line": i, **({"inlined": [{"func": "helper", "file": "helper.h", "line": 7}]} if i % 5 == 0 else {})})
    for i in range(FRAMEWORK):
        frames.append({"id": 3 + OUTER + sites + i, "module": 1, "offset": 9 + i, "func": "call", "file": "/v/site-packages/torch/nn.py",
                       "line": 7 + i, "lang": "python"})
    return frames


def stack_of(i, sites):
    inner = [3 + OUTER + sites + k for k in range(FRAMEWORK)] if i == 1 else []
    frames = [2 + OUTER + i, *inner, 2 + i % OUTER, 1 if i % 2 else 2 + OUTER + sites]
    return {"id": i + 1, "frames": frames, "shown": [0, len(frames)]}


def site(i, moments):
    live = (i % 7 == 0) * (i + 1) * 4096
    one = {"id": i, "key": f"{i * 2654435761 % 2**32:08x}", "stack": i + 1, "api": HOSTILE[0] if i == 3 else "cudaMalloc", "kind": "device",
           "device": i % 2, "live": {"count": int(live > 0), "bytes": live}, "held": live, "total": {"count": i + 1, "bytes": (i + 1) * 8192},
           "peak": {"count": 1, "bytes": live * 2}, "at_device_peak": {"count": 1, "bytes": live}, "reclaimed": {"count": 0, "bytes": 0},
           "frees": i, "failed": 0, "oom": 0, "first_ns": i, "last_ns": LENGTH}
    if live > 0:
        one.update({"class": "growing" if i % 14 == 0 else "lost", "oldest_age_ns": SECOND, "tag": HOSTILE[i % len(HOSTILE)]})
    if i < 4096:
        one["growth"] = {"slope_bps": live / 100, "r2": 0.95, "n": len(moments), "suspect": i % 14 == 0 and live > 0,
                         "bytes": [live * k // (len(moments) - 1) for k in range(len(moments))]}
    return one


def event(i, count):
    one = {"t_ns": LENGTH * i // count, "device": i % 2, "count": 1, "bytes": MIB * (i % 50)}
    kind = i % 10
    if kind < 7:
        levels = ["low", "medium", "high", "critical"]
        one.update({"type": "pressure", "level": levels[i // 10 % 4], "level_before": levels[(i // 10 + 3) % 4]})
    else:
        one.update({"type": ["oom", "trim", "limit"][kind - 7], "cause": "limit", "site": i % 30})
    return one


def device(ordinal, sites):
    return {"ordinal": ordinal, "uuid": f"GPU-{ordinal}", "name": f"Fast GPU {ordinal}", "total": 80 << 30, "live": {"count": sites, "bytes": 8 << 30},
            "held": 10 << 30, "allocs": sites, "frees": 0, "failed": 1, "total_bytes": 1 << 40, "peak": {"bytes": 9 << 30, "t_ns": 80 * SECOND},
            "idle": {"count": 4, "bytes": 1 << 30}, "driver_used": 12 << 30, "unattributed": 0}


def pool(ordinal):
    buckets = [{"kind": "device", "size_bytes": 1 << (9 + k), "hits": 100 * k, "misses": 10, "cached_blocks": k, "cached_bytes": k << (9 + k)} for k in range(18)]
    return {"device": ordinal, "hits": 900, "misses": 100, "num_ooms": 2, "buckets": buckets}


def points():
    rows = []
    for k in range(257):
        live = (8 << 30) * k // 256 + (k % 16) * 64 * MIB
        rows.append([LENGTH * k // 256, live, live + (1 << 30) + 128 * MIB, 1 << 30, live + (3 << 30)])
    return rows


def audit():
    none = {"count": 0, "bytes": 0}
    row = {"both": none, "both_cupti_bytes": 0, "sizes_differ": 0, "cupti_alone": none, "cuwarden_alone": none}
    kinds = {kind: {"allocated": row, "freed": row} for kind in ("device", "managed", "pinned", "array", "async", "pool")}
    kinds["async"] = {"allocated": {**row, "both": {"count": 1234, "bytes": 77 * MIB}, "cupti_alone": {"count": 2, "bytes": 6 * MIB}}, "freed": row}
    findings = [{"seen_by": "cupti", "kind": "async", "operation": "allocated", "address": "0x7f00", "count": 2, "bytes": 3 * MIB, "source": HOSTILE[0]},
                {"seen_by": "both", "kind": "async", "operation": "allocated", "count": 1, "bytes": 17 * MIB, "cupti_bytes": 18 * MIB}]
    return {"status": "done", "cupti_version": 24, "kinds": kinds, "mismatches": 9, "findings": findings, "dropped": 4, "not_kept": 0, "excused_frees": 0,
            "static": {"count": 3, "bytes": 51 * MIB}, "variables": [{"name": HOSTILE[1], "bytes": 19 * MIB, "managed": True}]}


def report(sites, end):
    moments = [LENGTH * k // 63 for k in range(64)]
    return {
        "schema": "cuwarden-report/1", "tool": {"name": "cuwarden", "version": "0.1.0"},
        "process": {"pid": 4711, "ppid": 1, "exe": "/opt/app/</title><script>hit()</script>", "argv": ["train", HOSTILE[0], "--epochs=3"], "cwd": "/opt",
                    "host": "node7", "rank": "3", "start_ns": 1774060000 * SECOND, "duration_ns": LENGTH, "exit": {"kind": end, **({"code": 0} if end == "exit" else {})}},
        "cuda": {"driver": 13000}, "devices": [device(0, sites), device(1, sites), device(2, sites)],
        "pool": {"mode": "pool", "devices": [pool(0), pool(1)]},
        "pressure": {"devices": [{"device": 0, "level": "high", "limit": 11 << 30, "min_free": 0, "held": 3 * MIB, "peak_held": 7 * MIB, "highest_use": 0.875,
                                  "levels": {"low": {"ns": 75}, "critical": {"ns": 25}}, "refused": {"limit": 41},
                                  "ladder": [{"rung": "sync", "tried": 17, "helped": 5, "released_bytes": 13 * MIB}]}]},
        "old": {"age_ns": 60 * SECOND, "sites": [{"site": 7, "count": 6, "bytes": 99 * MIB, "oldest_age_ns": 61 * SECOND}]},
        "oom_accounts": [{"t_ns": 2 * SECOND, "code": 2, "device": 1, "site": 3, "cause": "limit", "bytes": 511 * MIB, "fits": 21 * MIB, "live": 40 * MIB,
                          "held": 42 * MIB, "idle": MIB, "spare": 0, "free": 8 * MIB, "total": 64 * MIB, "others": 14 * MIB, "fragmented": True,
                          "holders": [{"site": 7, "api": HOSTILE[0], "count": 9, "bytes": 30 * MIB}], "rest": {"count": 3, "bytes": 10 * MIB}}],
        "modules": [{"id": k, "path": f"/opt/lib{k}.so", "build_id": "ab" * 20} for k in (1, 2, 3)],
        "frames": frames_of(sites),
        "stacks": [stack_of(i, sites) for i in range(sites)],
        "sites": [site(i, moments) for i in range(sites)],
        "leaks": [{"site": 7, "ptr": "0x7f0000001000", "bytes": 32768, "held": 32768, "t_ns": 5, "tid": 12}], "leaks_truncated": 0,
        "events": [event(i, sites * 10) for i in range(sites * 10)], "diagnostics": [{"text": "1 call was not seen " + HOSTILE[4]}],
        "growth": {"t_ns": moments}, "timeline": {"series": [{"device": k, "points": points()} for k in (0, 1)] + [{"device": 2, "points": [[LENGTH - 2 * SECOND, GIB, GIB, 0, GIB]]}]},
        "tags": [{"tag": HOSTILE[1], "steps": 12, "first_ns": 1, "last_ns": LENGTH, "first_bytes": MIB, "last_bytes": 13 * MIB, "slope_bytes": MIB,
                  "r2": 0.99, "rising": True}],
        "audit": audit(),
        "regrowth": [{"site": 7, "resizes": 20, "factor": 1.5, "copied_bytes": 55 * MIB, "capacity_bytes": 90 * MIB}],
        "summary": {"leaked_bytes": 123 * MIB, "leaked_blocks": 5, "leak_sites": 2, "peak_bytes": 9 << 30, "allocs": sites, "frees": 7, "failed": 1,
                    "pool_hits": 1800, "pool_misses": 200}}


if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        json.dump(report(int(sys.argv[1]), *(sys.argv[3:] or ["exit"])), out, ensure_ascii=False)
