# SPDX-License-Identifier: MIT
"""What the output forms of `cuwarden report` hold, compared with the report in JSON.

forms.py CHECK OUTPUT JSON [SITES]; CHECK is the name of a function below without its "check_". With
SITES, ids with commas between them, only those call sites are expected.
"""
import gzip
import json
import pickle
import sys


def left(site):
    return (site["live"]["count"] + site["reclaimed"]["count"],
            site["live"]["bytes"] + site["reclaimed"]["bytes"])


def told(report):
    """Without the sites that were only called to free, unless an error names them."""
    errors = [event for event in report["events"] if event["type"] in ("invalid-free", "fatal")]
    named = {event.get("site") for event in errors}
    named |= {event["first_freed"]["site"] for event in errors if "first_freed" in event}
    return [site for site in report["sites"]
            if site["total"]["count"] + site["failed"] + site["oom"] + sum(left(site)) or site["id"] in named]


def device_of(record):
    """The host has a name in the report, and a number here."""
    return 64 if record["device"] == "host" else record["device"]


def names_of(report, site):
    """Functions of the visible frames, the innermost first."""
    frames = {frame["id"]: frame for frame in report["frames"]}
    for stack in report["stacks"]:
        if stack["id"] == site["stack"]:
            begin, count = stack.get("shown", [0, len(stack["frames"])])
            names = []
            for number in stack["frames"][begin:begin + count]:
                names += [one["func"] for one in frames[number].get("inlined", [])]
                names.append(frames[number].get("func"))
            return names
    return []


# ---- pprof: read by the wire format, with field numbers of profile.proto ----

def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2, "wire type %d" % (key & 7)
            size = varint()
            assert at + size <= len(data), "a field is longer than the message"
            yield key >> 3, data[at:at + size]
            at += size


def one(message, number, default=0):
    return next((value for key, value in fields(message) if key == number), default)


def every(message, number):
    return [value for key, value in fields(message) if key == number]


def check_pprof(path, report, sites):
    profile = gzip.open(path).read()
    strings = [text.decode() for text in every(profile, 6)]
    assert strings[0] == "", "the first string is not empty"
    types = [strings[one(message, 1)] for message in every(profile, 1)]
    functions = {one(message, 1): message for message in every(profile, 5)}
    mappings = {one(message, 1): message for message in every(profile, 3)}
    locations = {one(message, 1): message for message in every(profile, 4)}
    assert len(functions) == len(every(profile, 5)) and len(locations) == len(every(profile, 4))
    assert one(profile, 9) == report["process"]["start_ns"]
    assert one(profile, 10) == report["process"]["duration_ns"]
    for location in locations.values():
        if one(location, 2):
            mapping = mappings[one(location, 2)]
            assert one(mapping, 2) <= one(location, 3) < one(mapping, 3), "outside of its mapping"
    modules = {module["path"]: module.get("build_id", "") for module in report["modules"]}
    for mapping in mappings.values():
        assert modules[strings[one(mapping, 5)]] == strings[one(mapping, 6)], "another build-id"

    found = []
    for sample in every(profile, 2):
        stack = []
        for number in every(sample, 1):
            for line in every(locations[number], 4):
                stack.append(strings[one(functions[one(line, 1)], 2)])
        labels = {strings[one(label, 1)]: strings[one(label, 2)] for label in every(sample, 3)}
        values = dict(zip(types, every(sample, 2)))
        assert len(every(sample, 2)) == len(types)
        found.append((values["inuse_objects"], values["inuse_space"], values["alloc_objects"],
                      values["alloc_space"], values["peak_space"], labels["api"], labels["kind"],
                      labels["device"], labels.get("class", ""), tuple(stack)))
    wanted = [left(site) + (site["total"]["count"], site["total"]["bytes"],
                            site["at_device_peak"]["bytes"], site["api"], site["kind"],
                            "host" if device_of(site) == 64 else str(site["device"]),
                            site.get("class", ""), tuple(names_of(report, site)))
              for site in sites if site["total"]["count"]]
    assert sorted(found) == sorted(wanted), "%s\nis not\n%s" % (sorted(found), sorted(wanted))


def check_first_mapping(path, report, _sites):
    """Readers take it for the program."""
    profile = gzip.open(path).read()
    strings = [text.decode() for text in every(profile, 6)]
    assert strings[one(every(profile, 3)[0], 5)] == report["process"]["exe"]


# ---- perfetto ----

def check_times(counters):
    """A viewer takes counters of one name for one, which has one value at a time."""
    for name, points in counters.items():
        times = [time for time, _ in points]
        assert len(times) == len(set(times)), name


def check_perfetto(path, report, _sites):
    events = json.load(open(path))["traceEvents"]
    assert all(event["pid"] == report["process"]["pid"] for event in events)
    assert any(event["ph"] == "M" and event["name"] == "process_name" for event in events)
    counters = {}
    for event in events:
        assert event["ph"] in "MCi", event
        if event["ph"] == "C":
            (value,) = event["args"].values()
            counters.setdefault(event["name"], []).append((round(event["ts"] * 1000), value))
    check_times(counters)
    for series in report["timeline"]["series"]:
        label = "host" if device_of(series) == 64 else "device %d" % series["device"]
        for at, column in enumerate(("live", "held", "idle"), 1):
            wanted = [(point[0], point[at]) for point in series["points"]]
            assert counters["%s %s" % (label, column)] == wanted, label
    marks = [(event["name"], round(event["ts"] * 1000)) for event in events
             if event["ph"] == "i" and "step" not in event["args"]]
    assert marks == [(event["type"], event["t_ns"]) for event in report["events"]], marks
    steps = {(event["name"], event["args"]["steps"]) for event in events
             if event["ph"] == "i" and "step" in event["args"]}
    assert steps == {(tag["tag"], tag["steps"]) for tag in report["tags"] if tag["steps"]}, steps


def check_picked_perfetto(path, report, sites):
    """Of what happened at a call site only what happened at one of those."""
    keys = {site["key"] for site in sites}
    events = json.load(open(path))["traceEvents"]
    counters = {}
    for event in events:
        if event["ph"] == "C":
            counters.setdefault(event["name"], []).append((event["ts"], 0))
    check_times(counters)
    events = [event["args"] for event in events if event["ph"] == "i"]
    assert {event["site"] for event in events if "site" in event} <= keys, events


# ---- torch ----

def check_torch(path, report, sites):
    snapshot = pickle.load(open(path, "rb"))
    ids = {site["id"]: site for site in sites}
    wanted = sorted((int(leak["ptr"], 16), leak["bytes"], tuple(names_of(report, ids[leak["site"]])))
                    for leak in report["leaks"]
                    if leak["site"] in ids and device_of(ids[leak["site"]]) < 64)
    found = []
    for segment in snapshot["segments"]:
        (block,) = segment["blocks"]
        assert segment["address"] == block["address"] and segment["total_size"] == block["size"]
        assert block["state"] == "active_allocated" and block["size"] >= block["requested_size"]
        assert all(type(frame["filename"]) is str and type(frame["line"]) is int
                   for frame in block["frames"])
        found.append((block["address"], block["requested_size"],
                      tuple(frame["name"] for frame in block["frames"])))
        assert segment["device"] < len(snapshot["device_traces"])
    assert sorted(found) == wanted, "%s\nis not\n%s" % (sorted(found), wanted)
    for device, trace in enumerate(snapshot["device_traces"]):
        allocs = [event for event in trace if event["action"] == "alloc"]
        here = [segment for segment in snapshot["segments"] if segment["device"] == device]
        assert sorted(event["addr"] for event in allocs) == sorted(one["address"] for one in here)
        assert [event["time_us"] for event in allocs] == sorted(event["time_us"] for event in allocs)


# ---- heaptrack: the stream, added up ----

def check_heaptrack(path, report, sites):
    strings, ips, traces, infos = [""], [None], [None], []
    live, peak = {}, 0
    total = calls = clock = 0
    for line in open(path, newline="\n"):
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "s":
            size, text = rest.split(" ", 1)
            assert int(size, 16) == len(text.encode()), line
            strings.append(text)
            continue
        numbers = [int(word, 16) for word in rest.split()] if kind not in ("X", "#") else []
        if kind == "v":
            assert numbers[1] == 3
        elif kind == "i":
            assert len(numbers) % 3 == 2 and all(n < len(strings) for n in numbers[2::3]), line
            ips.append([strings[number] for number in numbers[2::3]])
        elif kind == "t":
            assert 0 < numbers[0] < len(ips) and numbers[1] < len(traces), line
            traces.append(ips[numbers[0]] + (traces[numbers[1]] or []))
        elif kind == "a":
            infos.append((numbers[0], tuple(traces[numbers[1]])))
        elif kind in "+-":
            size, trace = infos[numbers[0]]
            sign = 1 if kind == "+" else -1
            blocks, held = live.get(trace, (0, 0))
            live[trace] = (blocks + sign, held + sign * size)
            assert min(live[trace]) >= 0, "freed before it was allocated"
            total += sign * size
            peak = max(peak, total)
            calls += kind == "+"
        elif kind == "c":
            assert numbers[0] >= clock, "time goes back"
            clock = numbers[0]
    wanted = {}
    for site in sites:
        if sum(left(site)):
            trace = tuple([site["api"]] + names_of(report, site))
            wanted[trace] = tuple(map(sum, zip(wanted.get(trace, (0, 0)), left(site))))
    assert {trace: amount for trace, amount in live.items() if sum(amount)} == wanted, live
    assert calls == sum(site["total"]["count"] for site in sites), calls
    # What ended contexts took back stays for heaptrack, and may be more in the end.
    held = sum(site["at_device_peak"]["bytes"] for site in sites)
    held = max(held, sum(left(site)[1] for site in sites))
    # Of some sites the sum at the device's peak is no bound on what a single block had.
    assert peak == held if len(sites) == len(report["sites"]) else peak >= held, peak


# ---- json, collapsed ----

def check_json(path, report, sites):
    found = json.load(open(path))
    assert found["selection"] == {"sites": len(sites), "of": len(told(report))}
    assert found["sites"] == sites, "other sites, or in another order"
    ids = {site["id"] for site in sites}
    assert found["leaks"] == [leak for leak in report["leaks"] if leak["site"] in ids]
    assert found["regrowth"] == [one for one in report["regrowth"] if one["site"] in ids]
    for key, value in report.items():
        assert key in ("sites", "leaks", "regrowth") or found[key] == value, key


def check_collapsed(path, report, sites):
    found = sorted(line.rstrip("\n") for line in open(path))
    sums = {}
    for site in sites:
        stack = ";".join(names_of(report, site)[::-1] + [site["api"]])
        sums[stack] = sums.get(stack, 0) + left(site)[1]
    wanted = sorted("%s %d" % one for one in sums.items() if one[1])
    assert found == wanted, "%s\nis not\n%s" % (found, wanted)


def main():
    check, path, source = sys.argv[1:4]
    report = json.load(open(source))
    sites = report["sites"]
    if len(sys.argv) > 4:
        by_key = {site["key"]: site for site in sites}
        sites = [by_key[key] for key in sys.argv[4].split(",") if key]
    globals()["check_" + check](path, report, sites)


main()
