# SPDX-License-Identifier: MIT
# html.test: what a page of the HTML report holds.
import json, re, sys

page = open(sys.argv[1], encoding="utf-8").read()
parts = {}
for found in re.finditer(r'<script type="application/json" id="data-([a-z]+)">(.*?)</script>', page, re.S):
    assert "<" not in found[2], found[1]
    parts[found[1]] = json.loads(found[2])
outside = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)
assert outside.count("<script>") == outside.count("</script>") == 1, "elements"
assert not re.search(r"https?:|//[a-z]+\.|<img|<link|<iframe|@import|url\(", outside), "something is fetched"
assert "innerHTML" not in outside and "eval(" not in outside and "document.write" not in outside

def value(table, column, i):
    return table[column][i] if isinstance(table[column], list) else table[column]

report = json.load(open(sys.argv[2], encoding="utf-8"))
sites, nodes, strings, frames = (parts[name] for name in ("sites", "nodes", "strings", "frames"))
# What was only called to free is no site, unless an error names it.
named = {event.get("site") for event in report["events"] if event["type"] in ("invalid-free", "fatal")}
report["sites"] = [s for s in report["sites"] if s["total"]["count"] + s["failed"] + s["live"]["count"] or s["id"] in named]
for site in report["sites"]:
    site["device"] = 64 if site["device"] == "host" else site["device"]
assert sites["n"] == len(report["sites"]) == len(parts["leaves"])
assert parts["events"]["n"] == len(report["events"])
assert all(value(nodes, "parent", i) < i for i in range(nodes["n"])), "a parent comes late"
wanted = sorted((s["key"], s["api"], s["total"]["bytes"], s["live"]["bytes"]) for s in report["sites"])
shown = sorted(("%08x" % value(sites, "id", i), strings[value(sites, "api", i)], value(sites, "totalBytes", i),
                value(sites, "liveBytes", i)) for i in range(sites["n"]))
assert shown == wanted, (shown[:3], wanted[:3])
# What is left of a process that runs, or that was ended, is not leaked.
main, summary = parts["main"], report["summary"]
has_leaks = report["process"]["exit"]["kind"] not in ("running", "killed")
assert main["left"] == {"isLeaked": has_leaks, "bytes": summary["leaked_bytes"], "blocks": summary["leaked_blocks"],
                        "sites": summary["leak_sites"]}, main["left"]
for i in range(sites["n"]):
    leak, is_leak = strings[value(sites, "leak", i)], value(sites, "isLeak", i)
    assert is_leak == (has_leaks and leak in ("lost", "growing", "context-destroyed")), (leak, is_leak)
    assert leak != ("live" if has_leaks else "lost"), leak
# Calls without a site are counted only by cause.
refused = sum(sum(device.get("refused", {}).values()) for device in report["pressure"]["devices"])
assert main["summary"]["ooms"] == max(refused, sum(s["oom"] for s in report["sites"])), main["summary"]
# Each site's way up the tree: the function that was called, then the stack, innermost first.
names = {one["id"]: one.get("func", "") for one in report["frames"]}
stacks = {one["id"]: one for one in report["stacks"]}
by_key = {(s["key"], s["device"], s.get("tag", "")): s for s in report["sites"]}
for i in range(sites["n"]):
    site = by_key["%08x" % value(sites, "id", i), value(sites, "device", i), strings[value(sites, "tag", i)]]
    node, path = parts["leaves"][i], []
    while node >= 0:
        frame = value(nodes, "frame", node)
        path.append(parts["apis"][frame - frames["n"]] if frame >= frames["n"] else strings[value(frames, "name", frame)])
        node = value(nodes, "parent", node)
    first, count = stacks[site["stack"]].get("shown", [0, len(stacks[site["stack"]]["frames"])]) if site.get("stack") else (0, 0)
    expected = [names[one] for one in stacks[site["stack"]]["frames"][first:first + count]] if count else []
    assert path[0] == site["api"] and [one for one in path[1:] if one != "helper"] == expected, (path, expected)
assert parts["whole"]["audit"] == report.get("audit"), parts["whole"]["audit"]
times = parts["events"]["t"]
assert parts["events"]["n"] == 0 or sum(times if isinstance(times, list) else [times]) <= report["events"][-1]["t_ns"]
assert {row: series for row, series in parts["series"]} == {
    i: s["growth"]["bytes"] for i in range(sites["n"]) for s in report["sites"]
    if s["key"] == "%08x" % value(sites, "id", i) and s["device"] == value(sites, "device", i) and "bytes" in s.get("growth", {})}
print(len(page))
