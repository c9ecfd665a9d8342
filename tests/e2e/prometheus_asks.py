# SPDX-License-Identifier: MIT
"""prometheus.test: prometheus_asks.py PORT scraped | alerts RULES.yml | dashboard DASHBOARD.json: what a Prometheus says."""
import json
import math
import re
import sys
import time
import urllib.parse
import urllib.request

SECONDS = 600


def ask(path, **values):
    url = "http://127.0.0.1:%s/api/v1/%s?%s" % (sys.argv[1], path, urllib.parse.urlencode(values))
    with urllib.request.urlopen(url, timeout=600) as answer:
        return json.load(answer)["data"]


def series(expression):
    return [one for one in ask("query", query=expression)["result"] if math.isfinite(float(one["value"][1]))]


def wait_for(wanted, missing):
    """Asks until nothing that is wanted is missing."""
    end = time.monotonic() + SECONDS
    while True:
        left = missing(wanted)
        if not left:
            return
        if time.monotonic() > end:
            sys.exit("missing: %s" % "\n".join(sorted(left)))
        time.sleep(0.2)


def not_fired(names):
    """Those that fire at some time; not all have to at the same."""
    fired = series('count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))')
    return names - {one["metric"]["alertname"] for one in fired}


def empty(expressions):
    return {e for e in expressions if not series(e)}


def queries_of(board):
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield re.sub(r"\$(host|exe)\b", ".*", target["expr"].replace("$__rate_interval", "5s"))


what = sys.argv[2]
if what == "scraped":
    try:
        sys.exit(not series("count_over_time(cuwarden_build_info[1m]) >= 2"))
    except OSError:
        sys.exit(1)
elif what == "alerts":
    wait_for(set(re.findall(r"- alert: (\w+)", open(sys.argv[3]).read())), not_fired)
    assert [a["labels"]["exe"] for a in ask("alerts")["alerts"]] == ["drv_script"] * len(ask("alerts")["alerts"])
    for alert in ask("alerts")["alerts"]:
        assert "<no value>" not in alert["annotations"]["summary"] and "{{" not in alert["annotations"]["summary"], alert
else:
    board = json.load(open(sys.argv[3]))
    wait_for(set(queries_of(board)), empty)
    for variable in board["templating"]["list"]:
        match = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"])
        assert not match or ask("label/%s/values" % match[2], **{"match[]": match[1]}), variable
