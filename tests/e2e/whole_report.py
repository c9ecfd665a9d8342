# SPDX-License-Identifier: MIT
# Completes reports that are made by hand, in place: what every report and every summary has and these do
# not is empty or 0. The space before the brace keeps them from check_reports_ (init.sh).
# Usage: whole_report.py SCHEMA FILE...
import json
import sys

EMPTY = {"array": [], "integer": 0, "string": ""}
schema = json.load(open(sys.argv[1]))["$defs"]


def complete(record, name):
    for key in schema[name]["required"]:
        record.setdefault(key, EMPTY.get(schema[name]["properties"][key].get("type"), {}))


for path in sys.argv[2:]:
    with open(path) as file:
        report = json.load(file)
    complete(report, "report")
    report["summary"] = dict(report["summary"])
    complete(report["summary"], "summary")
    with open(path, "w") as file:
        file.write(" " + json.dumps(report, separators=(",", ":")) + "\n")
