# SPDX-License-Identifier: MIT
"""Holds the leaks that compute-sanitizer printed against a report of ours.

sanitizer_leaks.py LOG REPORT.json PROGRAM

Both are lists of blocks: bytes, and the functions of PROGRAM from the one that allocated to main. They
must be the same. Addresses and times differ from run to run and are not looked at; nor are frames of
other modules and of the runtime, which may be linked into PROGRAM.

What the two count differently is told apart by kind:
  memory of the device, pitched and managed: both count it, and it must agree;
  pinned, arrays, stream-ordered, virtual and whatever else: the manual does not say, and versions
    differ; the sanitizer has all blocks of such a kind or none, and what it has must agree (arrays and
    mipmaps in number alone: how many bytes one takes is the driver's affair);
  the device's heap, modules, and pools, reservations and multicast objects as such: no blocks; left out;
  what went with its context: the sanitizer counts it as leaked then, and we as reclaimed; it must agree;
  blocks that the library keeps in its pool: the report comes from a run of its own, where they are no
    leaks, and the sanitizer's log from one without a pool.
"""
import collections
import itertools
import json
import os
import re
import subprocess
import sys

BOTH_COUNT = {"device", "pitched", "managed"}
SHAPES = {"array", "mipmap"}
NO_BLOCKS = {"module", "pool", "reservation", "multicast"}
RUNTIME = re.compile(r"(lib)?cuda[A-Z_r]|cu[A-Z]|__cuda|__device_stub")

LEAK = re.compile(r"Leaked ([0-9,]+) bytes\b(.*)")
FRAME = re.compile(r"Host Frame: ?(.*?) ?\[0x([0-9a-f]+)\](?: in (.+))?$")
SUMMARY = re.compile(r"LEAK SUMMARY: ([0-9,]+) bytes leaked in ([0-9,]+) allocations?$")


class Unreadable(Exception):
    pass


def number(text):
    return int(text.replace(",", ""))


def read_log(path):
    """The leaks as (what, bytes, frames) with frames as [name, offset, module], innermost first."""
    leaks, frames, summary = [], None, None
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [re.sub(r"^=+ ?", "", line.rstrip("\n")).strip() for line in file]
    for line in lines:
        leak, frame, total = LEAK.match(line), FRAME.match(line), SUMMARY.match(line)
        if leak:
            frames = []
            leaks.append((leak[2], number(leak[1]), frames))
        elif total:
            summary = (number(total[2]), number(total[1]))
        elif line.startswith("Leaked ") or (line.startswith("Host Frame:") and not frame):
            raise Unreadable(f"no line of a leak that this script knows: '{line}'")
        elif frame and frames is not None:
            frames.append([frame[1], int(frame[2], 16), frame[3] or ""])
        elif line.startswith("in ") and frames and not frames[-1][2]:
            frames[-1][2] = line[3:]  # older versions take a line for the module
        elif line and not line.startswith("Saved host backtrace"):
            frames = None  # an error, with frames of its own
    if summary is None:
        raise Unreadable("there is no LEAK SUMMARY; was it run with --leak-check full?")
    counted = (len(leaks), sum(leak[1] for leak in leaks))
    if counted != summary:
        raise Unreadable(f"it lists {counted} blocks and bytes and sums up {summary}; is --print-limit 0 given?")
    return leaks


class Symbols:
    """Names of functions that the log leaves out: those that the program does not export."""

    def __init__(self, program):
        text = subprocess.run(["nm", "-n", program], capture_output=True, text=True, check=True).stdout
        words = [line.split() for line in text.splitlines()]
        self.starts = [(int(w[0], 16), w[2]) for w in words if len(w) == 3 and w[1] in "tTwW"]

    def at(self, offset):
        below = [name for start, name in self.starts if start < offset]  # a return address
        return below[-1] if below else ""


def plain(name):
    """A function without what some versions add: its source line, its arguments."""
    name = re.sub(r" in \S+:\d+$", "", name)
    return re.sub(r"^\S+:\d+:", "", name).split("(")[0].strip()


def own(names):
    """The program's own functions, from the innermost to main."""
    names = [name for name in names if name and not RUNTIME.match(name)]
    return tuple(names[: names.index("main") + 1] if "main" in names else names)


def sanitizer_places(log, program):
    """Sizes of leaked blocks by place."""
    symbols, places = Symbols(program), collections.defaultdict(list)
    for what, size, frames in read_log(log):
        if "device heap" in what or "CUDA module" in what:
            continue
        names = [
            plain(name) or symbols.at(offset)
            for name, offset, module in frames
            if os.path.basename(module) == os.path.basename(program)
        ]
        places[own(names)].append(size)
    return places


def our_places(report, program):
    """By kind and place: sizes of blocks, None where only their sum is known, and count and sum."""
    modules = {m["id"] for m in report["modules"] if os.path.basename(m["path"]) == os.path.basename(program)}
    frames = {f["id"]: f.get("func", "") if f["module"] in modules else "" for f in report["frames"]}
    stacks = {s["id"]: own([frames[f] for f in s["frames"]]) for s in report["stacks"]}
    sizes = collections.defaultdict(list)
    for leak in report["leaks"]:
        sizes[leak["site"]].append(leak["bytes"])
    kinds = collections.defaultdict(lambda: collections.defaultdict(list))
    for site in report["sites"]:
        live, gone = site["live"], site["reclaimed"]
        if site["kind"] in NO_BLOCKS or not live["count"] + gone["count"]:
            continue
        listed = sizes[site["id"]]
        if gone["count"] or (len(listed), sum(listed)) != (live["count"], live["bytes"]):
            listed = None
        total = (live["count"] + gone["count"], live["bytes"] + gone["bytes"])
        kinds[site["kind"]][stacks.get(site.get("stack"), ())].append((total, listed))
    return kinds


def said_of(total):
    return f"{total[0]} blocks" + (f" of {total[1]} bytes" if len(total) > 1 else "")


def differences(theirs, ours, kinds):
    """Lines that say where the sanitizer's leaks are not those of these kinds of ours."""
    said = []
    for place in sorted(set(theirs) | {place for kind in kinds for place in ours[kind]}):
        entries = [entry for kind in kinds for entry in ours[kind].get(place, [])]
        mine = (sum(e[0][0] for e in entries), sum(e[0][1] for e in entries))
        their = (len(theirs.get(place, [])), sum(theirs.get(place, [])))
        if any(place in ours[kind] for kind in SHAPES & set(kinds)):
            mine, their, entries = mine[:1], their[:1], [(None, None)]
        known = all(listed is not None for _, listed in entries)
        sizes = sorted(size for _, listed in entries for size in listed or [])
        if mine != their or (known and sizes != sorted(theirs.get(place, []))):
            said.append(f"{' < '.join(place) or 'no function of the program'}: the sanitizer has "
                        f"{said_of(their)} {sorted(theirs.get(place, []))[:8]}; the report {said_of(mine)} {sizes[:8]}")
    return said


def main():
    log, report, program = sys.argv[1:]
    with open(report, encoding="utf-8") as file:
        ours = our_places(json.load(file), program)
    try:
        theirs = sanitizer_places(log, program)
    except Unreadable as error:
        sys.exit(f"{log}: {error}")
    sure = sorted(set(ours) & BOTH_COUNT)
    unsure = sorted(set(ours) - BOTH_COUNT)
    for count in range(len(unsure), -1, -1):
        for more in itertools.combinations(unsure, count):
            if not differences(theirs, ours, sure + list(more)):
                total = [size for sizes in theirs.values() for size in sizes]
                left_out = sorted(set(unsure) - set(more))
                print(f"{len(total)} blocks, {sum(total)} bytes in {len(theirs)} places: the same"
                      + (f"; not counted by the sanitizer: {', '.join(left_out)}" if left_out else ""))
                return
    print("\n".join(differences(theirs, ours, sure + unsure)))
    sys.exit(1)


main()
