# SPDX-License-Identifier: MIT
"""Checks a JSON report: claims.py REPORT.json, one Python expression per line of standard input.

One that follows the word "pool" holds with MODE=pool only, one that follows "strict" or "deferred"
with MODE=pool and that FREE_SYNC.
Before the expressions it checks what holds of every report: its sums agree with each other.
"""
import json
import sys

HOST_KINDS = {"pinned", "registered", "vmm-host"}
UNCOUNTED_KINDS = {
    "ipc", "imported", "external", "external-map", "graphics", "reservation", "multicast", "pool", "module",
}

with open(sys.argv[1], encoding="utf-8") as file:
    r = json.load(file)

summary = r["summary"]
NOTHING_SERVED = {
    "hits": 0, "misses": 0, "cached_blocks": 0, "cached_bytes": 0, "buckets": [],
    "driver_calls_saved": {"alloc": 0, "free": 0},
}
frames = {frame["id"]: frame for frame in r["frames"]}
stacks = {
    stack["id"]: [frames[number].get("func", "?") for number in stack["frames"]]
    for stack in r["stacks"]
}


def functions(site):
    """Names of a site's stack, the innermost first."""
    return stacks.get(site.get("stack"), [])


def sites(function):
    """The sites whose stack has this function in it."""
    return [site for site in r["sites"] if function in functions(site)]


def site(function):
    """The one site with this function in its stack that allocated, or tried to."""
    found = [s for s in sites(function) if s["total"]["count"] or s["failed"]]
    if len(found) != 1:
        raise LookupError(f"{len(found)} sites have {function} in their stack")
    return found[0]


def live(function):
    """(blocks, bytes) that the function's one site still holds."""
    return (site(function)["live"]["count"], site(function)["live"]["bytes"])


def steps(tag):
    """(begun, ended) of the one tag of this name."""
    [found] = [t for t in r["tags"] if t["tag"] == tag]
    return (found["begun"], found["steps"])


def kind(name):
    """(blocks, bytes) of a kind that are live."""
    found = r["kinds"].get(name)
    return (found["live"]["count"], found["live"]["bytes"]) if found else (0, 0)


def events(name):
    return [event for event in r["events"] if event["type"] == name]


def served(device):
    """What the pool did on a device ("host": with pinned memory)."""
    found = [entry for entry in r["pool"]["devices"] if entry["device"] == device]
    return found[0] if found else NOTHING_SERVED


def not_waited_for(device):
    """Frees that found the device busy for longer than a strict free waits: how many, the machine decides."""
    entry = served(device)
    return entry.get("put_off", 0) + entry.get("bypassed", {}).get("busy", 0)


def bucket(device, size, name="device"):
    """The pool's bucket of this size and kind."""
    return next(b for b in served(device)["buckets"] if (b["size_bytes"], b["kind"]) == (size, name))


def saved(device):
    """Calls that the driver was spared."""
    return sum(served(device)["driver_calls_saved"].values())


def pressure(device=0):
    """What the section on pressure says of a device; with nothing to say, that nothing was refused."""
    found = [d for d in r["pressure"]["devices"] if d["device"] == device]
    return found[0] if found else {"refused": {}, "ladder": []}


def rung(name, device=0):
    """(tried, helped, released_bytes) of a rung of the ladder."""
    found = next(one for one in pressure(device)["ladder"] if one["rung"] == name)
    return (found["tried"], found["helped"], found["released_bytes"])


def rungs(device=0):
    """The rungs that were tried, and those that helped."""
    ladder = pressure(device)["ladder"]
    return ([one["rung"] for one in ladder if one["tried"]],
            [one["rung"] for one in ladder if one["helped"]])


def refused(device=0):
    """Calls that got out of memory, by cause, without the zeroes."""
    return {cause: n for cause, n in pressure(device)["refused"].items() if n}


def trail(event):
    """Functions of the stack that an event names, the innermost first."""
    return functions(r["sites"][event["site"]]) if "site" in event else []


def applies(word):
    return word in (r["pool"]["mode"], r["pool"].get("free_sync"))


def contradictions_of_pool():
    for device in r["pool"]["devices"]:
        for key in ("hits", "misses", "cached_bytes", "cached_blocks"):
            if device[key] != sum(b[key] for b in device["buckets"]):
                yield f"pool, device {device['device']}: {key} is not the sum over buckets"
        out = sum(b["hits"] + b["released"] + b["cached_blocks"] for b in device["buckets"])
        if out > sum(b["kept"] for b in device["buckets"]) + device["prewarmed"]:
            yield f"pool, device {device['device']}: more left the pool than came in"
        if device["cached_bytes"] > device["reserved_bytes"]:
            yield f"pool, device {device['device']}: more is idle than is held"


def contradictions():
    """What can be wrong whatever the program did."""
    counted = [s for s in r["sites"] if s["kind"] not in UNCOUNTED_KINDS]
    leaked = [s for s in r["sites"] if s.get("class") in ("lost", "growing", "context-destroyed")]
    devices = r["devices"] + ([r["host"]] if "host" in r else [])
    for device in devices:
        rmm = (device["current_bytes"], device["current_count"], device["total_count"])
        if rmm != (device["live"]["bytes"], device["live"]["count"], device["allocs"]):
            yield f"device {device.get('ordinal', 'host')}: RMM's counters {rmm} are not PyTorch's"
    if r["schema"] != "cuwarden-report/1":
        yield "schema"
    for s in r["sites"]:
        if s["total"]["count"] != s["frees"] + s["reclaimed"]["count"] + s["live"]["count"]:
            yield f"site {s['key']}: allocations are not frees + reclaimed + live"
        if s["live"]["count"] == 0 and s["live"]["bytes"] != 0:
            yield f"site {s['key']}: bytes without blocks"
        if s["kind"] in HOST_KINDS and s["device"] != "host":
            yield f"site {s['key']}: {s['kind']} on device {s['device']}"
    for key in ("allocs", "frees", "failed"):
        of_sites = sum(s["total"]["count"] if key == "allocs" else s[key] for s in counted)
        if summary[key] != of_sites:
            yield f"summary {key} {summary[key]}, of sites {of_sites}"
        if summary[key] != sum(device[key] for device in devices):
            yield f"summary {key} is not the sum over devices"
    for word, total in (("bytes", "leaked_bytes"), ("count", "leaked_blocks")):
        if summary[total] != sum(s["live"][word] + s["reclaimed"][word] for s in leaked):
            yield f"summary {total} is not the sum over leaked sites"
    if summary["leak_sites"] != len(leaked):
        yield "summary leak_sites"
    listed = len(r["leaks"]) + r.get("leaks_truncated", 0)
    if listed != sum(s["live"]["count"] for s in leaked):
        yield "the list of leaked blocks has another length than its sites say"


failed = 0
for text in [*contradictions(), *contradictions_of_pool()]:
    print("contradiction:", text)
    failed = 1
for line in sys.stdin:
    first, _, rest = line.partition(" ")
    if first in ("pool", "strict", "deferred"):
        if not applies(first):
            continue
        line = rest
    try:
        holds = eval(line)  # pylint: disable=eval-used
    except Exception as error:  # pylint: disable=broad-except
        holds = False
        print(f"{type(error).__name__}: {error}")
    if not holds:
        print("does not hold:", line.rstrip())
        failed = 1
if failed:
    for s in r["sites"]:
        print({key: s[key] for key in ("api", "kind", "device", "live", "total", "frees",
                                       "failed", "reclaimed")}, s.get("class"), functions(s))
sys.exit(failed)
