# SPDX-License-Identifier: MIT
"""Checks what cuwarden diff or merge has written: compare_claims.py FILE.json, one Python expression per line of
standard input."""
import json
import sys

M = 1 << 20

with open(sys.argv[1], encoding="utf-8") as file:
    r = json.load(file)


def site(name):
    """The one site whose innermost function this is."""
    [found] = [s for s in r["sites"] if s["stack"] and s["stack"][0].get("func") == name]
    return found


def change(before, after):
    return {"before": before, "after": after, "delta": after - before}


def spread(name):
    """What merge says of a site over all ranks."""
    return [site(name)[key] for key in ("min", "median", "max", "mean", "sum", "max_rank", "ranks")]


for line in sys.stdin:
    if not eval(line):  # pylint: disable=eval-used
        sys.exit("does not hold: " + line)
