# SPDX-License-Identifier: MIT
# gpu_result.py RESULT.json EXPRESSION...: they hold of what gpu-check has left, r: of its tests by name, t, and of
# the rows of its benchmarks.
import json
import sys

r = json.load(open(sys.argv[1]))
t = {test["name"]: test for test in r["tests"]}
rows = r.get("bench", [])
for word in ("passed", "failed", "skipped"):
    assert r[word] == sum(test["status"] == word for test in r["tests"]), word


def of(what, **wanted):
    return [row for row in rows if row["what"] == what and all(row[name] == wanted[name] for name in wanted)]


def places(contestant):
    return [(row["bytes"], row["threads"], row["streams"], row["touch"]) for row in of("pair", contestant=contestant)]


for claim in sys.argv[2:]:
    if not eval("(%s)" % claim):
        sys.exit("%s\n%s\n%s" % (claim, json.dumps(r["tests"], indent=1), "\n".join(map(str, rows[:40]))))
