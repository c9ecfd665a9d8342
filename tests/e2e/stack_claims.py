# SPDX-License-Identifier: MIT
"""Holds a JSON report against what a program says of its stacks: stack_claims.py REPORT.json <OUTPUT

  stack BYTES NAME<NAME<...   the call stack of the one leak of this size, the innermost function
                              first; "..." at the end: and what else there is
Prints the key of the site behind each size.
"""
import json
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)
frames = {frame["id"]: frame for frame in report["frames"]}
modules = {module["id"]: module["path"].split("/")[-1] for module in report["modules"]}
stacks = {stack["id"]: stack["frames"] for stack in report["stacks"]}
sites = {}
for leak in report["leaks"]:
    sites.setdefault(leak["bytes"], set()).add(leak["site"])


def name(frame):
    """A function, or the module of one that has no name."""
    return (frame.get("func") or modules.get(frame.get("module"), "?")).split(" [clone ")[0]


count = 0
for line in sys.stdin:
    match = re.match(r"stack (\d+) (.+)$", line)
    if not match:
        continue
    size, wanted = int(match[1]), match[2].split("<")
    found = [report["sites"][number] for number in sites.get(size, ())]
    if len(found) != 1:
        raise SystemExit("%d sites have leaked %d bytes" % (len(found), size))
    names = [name(frames[number]) for number in stacks[found[0]["stack"]]]
    if wanted[-1] == "...":
        wanted.pop()
        names = names[:len(wanted)]
    else:
        while names and names[-1] in ("_start", "__libc_start_main", "libc.so.6", "clone3", "?"):
            names.pop()
    if names != wanted:
        raise SystemExit("%d bytes: found %s, expected %s" % (size, "<".join(names), "<".join(wanted)))
    print(size, found[0]["key"])
    count += 1
if count == 0:
    raise SystemExit("the program says nothing of its stacks")
