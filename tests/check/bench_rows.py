# SPDX-License-Identifier: MIT
# bench.test: the rows of bench.json.
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
pairs = [row for row in rows if row["what"] == "pair"]
for row in pairs:
    for key in ("ns", "median", "bytes", "threads", "streams", "live"):
        if row.get("pattern") == "mix" and key == "bytes":
            continue
        assert isinstance(row[key], (int, float)) and row[key] >= 0, (key, row)
    assert 0 < row["ns"] <= row["median"], row
    assert ("stacks" in row) == (row["contestant"] not in ("plain", "CUB", "PyTorch", "RMM", "MODE=off")), row
def has(**wanted):
    return any(all(row.get(key) == value for key, value in wanted.items()) for row in pairs)
for contestant in ("plain", "before", "STACKS=off", "FREE_SYNC=deferred"):
    assert has(contestant=contestant, bytes=17179869184), contestant
for threads in (1, 2):
    for streams in (1, 2):
        assert has(contestant="STACKS=off", threads=threads, streams=streams), (threads, streams)
assert has(contestant="STACKS=full", threads=2, live=0)
assert has(contestant="STACKS=off", pattern="any", live=100)
assert has(contestant="STACKS=off", pattern="mix", low=256, high=65536)
assert has(contestant="STACKS=off", kind="asyncmax")
assert sum(row["what"] == "aim" for row in rows) >= 8
assert sum(row["what"] == "start" for row in rows) == 2
judged = {(row["program"], row["variant"]): row for row in rows if row["what"] == "judge"}
assert len(judged) == 16, judged.keys()
for (program, variant), row in judged.items():
    assert row["held_bytes"] >= row["live_bytes"] > 0 and row["ms"] > 0, row
    assert row["over_ideal"] == 1 if variant == "ideal" else row["over_ideal"] >= 1, row
    assert ("cuCtxRecordEvent" in row) == (variant in ("strict", "deferred")), row
traces = [row for row in rows if row["what"] == "trace"]
assert {row["trace"] for row in traces} == {"videos"} and len({row["device_bytes"] for row in traces}) == 2
for row in traces:
    assert row["requests"] == 194 and 0 <= row["hits"] <= 194 and (row["failed"] or row["peak_live_bytes"] > 49e6), row
    assert row["policy"] != "unbounded" or row["of_possible"] == 1 and row["failed"] == 0, row
assert {row["policy"] for row in traces} >= {"pool", "inference", "constrained", "unbounded", "pytorch", "rmm"}
aims = {row["name"]: row for row in rows if row["what"] == "aim"}
default = next(row for row in traces if row["policy"] == "pool" and row["device_bytes"] == 80 << 30)
for name, key in (("traces: hits of possible, worst videos", "of_possible"),
                  ("traces: efficiency, worst videos", "efficiency")):
    assert abs(aims[name]["figure"] - default[key]) < 1e-3, (aims[name], default)
for name in ("a tag is pushed, ns", "a tag is popped, ns", "a mark, ns", "statistics of a device, one call site, ns"):
    assert 0 < aims[name]["figure"] < 1e6, aims[name]
# Another process may have been at work meanwhile: any number will do.
for name in ("a download blocks its caller so many times less", "three stages apart: of what can overlap"):
    assert isinstance(aims[name]["figure"], (int, float)), aims[name]
# Less than 32 MiB held in vain does not count.
tight = next(row for row in traces if row["policy"] == "pool" and row["device_bytes"] != 80 << 30)
waste = tight["peak_held_bytes"] - tight["peak_live_bytes"]
counted = tight["fragmentation"] if waste >= 32 << 20 else 0
assert abs(aims["tight traces: fragmentation, worst videos"]["figure"] - counted) < 1e-3, (aims, tight)
assert abs(aims["tight traces: hits of possible, worst videos"]["figure"] - tight["of_possible"]) < 1e-3, (aims, tight)
assert rows[0]["what"] == "machine" and rows[0]["iters"] == 400 and rows[0]["commit"] and "PyTorch" not in rows[0]
