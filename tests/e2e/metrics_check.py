# SPDX-License-Identifier: MIT
# metrics.test: the metrics of two programs.
import sys
from metrics_parse import parse
one, two = sys.argv[1:3]
values, types = parse(open("out").read())
def of(metric, pid, **labels):
    found = [value for (name, have), value in values.items()
             if name == "cuwarden_" + metric and ("pid", pid) in have and set(labels.items()) <= set(have)]
    assert len(found) == 1, (metric, pid, labels, found)
    return found[0]
MIB = 1 << 20
assert of("live_bytes", one, device="0", kind="device") == 20 * MIB
assert of("live_bytes", one, device="host", kind="pinned") == 3 * MIB
assert of("cached_bytes", one, device="0") >= 2 * MIB
assert of("held_bytes", one, device="0") >= 22 * MIB
assert of("peak_live_bytes", one, device="0") == 22 * MIB
assert 0.05 < of("fragmentation_ratio", one, device="0") < 0.2 and of("peak_fragmentation_ratio", one, device="0") < 0.05
assert abs(of("fragmentation_ratio", one, device="0") - 1 + 20 * MIB / of("held_bytes", one, device="0")) < 1e-5
assert 0.9 < of("efficiency_ratio", one, device="0") <= 1
assert of("limit_bytes", one, device="0") == 600 * MIB
assert of("min_free_bytes", one, device="0") == MIB
assert of("allocations_total", one, device="0", kind="device") == 2
assert of("frees_total", one, device="0", kind="device") == 1
assert of("failed_allocations_total", one, device="0", kind="device") == 2
assert of("oom_total", one, device="0", cause="limit") == 1
assert of("oom_total", one, device="0", cause="driver") == 0
assert of("oom_total", one, device="0", cause="budget") == 1
assert of("budget_bytes", one, tag="^own$") == 22 * MIB
assert of("budget_live_bytes", one, tag="^own$") == 20 * MIB and of("budget_peak_live_bytes", one, tag="^own$") == 22 * MIB
assert of("budget_refused_total", one, tag="^own$") == 1 and of("budget_exceeded_total", one, tag="^own$") == 0
assert of("budget_bytes", one, tag=r'\"*') == MIB and of("budget_live_bytes", one, tag=r'\"*') == 0
# Two names that would print alike, of a byte and of its escape.
assert of("budget_bytes", one, tag=r"a\\x01") == 3 * MIB and of("budget_bytes", one, tag=r"a\\x5cx01") == 4 * MIB
assert not [key for key in values if key[0].startswith("cuwarden_budget") and ("pid", two) in key[1]]
assert of("pressure_level", one, device="0", level="low") == 1
assert of("pressure_level", one, device="0", level="critical") == 0
assert of("live_blocks", one, device="0", kind="device") == 1
assert of("device_total_bytes", one, device="0") > of("device_used_bytes", one, device="0") >= 22 * MIB
assert abs(of("pressure_ratio", one, device="0") - of("held_bytes", one, device="0") / (600 * MIB)) < 0.01
assert of("fallbacks_total", one, device="0") == of("fallback_bytes_total", one, device="0") == 0
assert sum(of("trimmed_bytes_total", one, device="0", reason=reason)
           for reason in ("full", "idle", "oom", "pressure", "asked", "neighbour", "context")) <= 2 * MIB
assert all(of("neighbour_requests_total", one, device="0", what=what) == 0 for what in ("asked", "silent", "served"))
assert of("neighbour_received_bytes_total", one, device="0") == 0
assert of("up", one, exe=r'a \"b\" \\ c') == 1
assert 1.7e9 < of("process_start_time_seconds", one) < 1e11
assert of("pool_hits_total", two, device="1") == 1
assert of("pool_misses_total", two, device="1") == 3
assert of("peak_live_bytes", two, device="1") == 11 * MIB and of("peak_held_bytes", two, device="1") == 16 * MIB
assert of("live_bytes", two, device="1", kind="device") == 11 * MIB
assert not [key for key in values if key[0] == "cuwarden_limit_bytes" and ("pid", two) in key[1]]
assert values["cuwarden_processes", (("state", "running"),)] == 2
