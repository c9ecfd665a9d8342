# SPDX-License-Identifier: MIT
# metrics.test: the documents name the metrics that there are.
import json, re, sys
from metrics_parse import parse
docs = sys.argv[1]
_, types = parse(open("out").read())
board = json.load(open(docs + "/grafana-dashboard.json"))
used = set()
for panel in board["panels"]:
    assert panel["title"] and panel["targets"], panel
    for target in panel["targets"]:
        names = set(re.findall(r"cuwarden_[a-z_]+", target["expr"]))
        assert names, target
        used |= names
for variable in board["templating"]["list"]:
    used |= set(re.findall(r"cuwarden_[a-z_]+", str(variable.get("query", ""))))
assert used and used <= set(types), used - set(types)
assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
told = set(re.findall(r"^\| `(cuwarden_[a-z_]+)`", open(docs + "/fleet.md").read(), re.M))
assert told == set(types), told ^ set(types)
rules = set(re.findall(r"cuwarden_[a-z_]+", open(docs + "/alerts.yml").read()))
assert rules and rules <= set(types), rules - set(types)
