# SPDX-License-Identifier: MIT
"""Holds reports of victims/drv_step.c against what holds after each of its instructions.

step.py SIZE REPORT.json...   in the order of time; SIZE: of its blocks in bytes
One of them stays for the whole program, the other one comes and goes: one call is in flight.
"""
import json
import sys

SIZE = int(sys.argv[1])
before = {}


def check(report):
    leaks, summary = report["leaks"], report["summary"]
    assert len(leaks) in (1, 2), "%d blocks" % len(leaks)
    assert all(leak["bytes"] == SIZE and leak["held"] >= SIZE for leak in leaks), leaks
    assert len({leak["ptr"] for leak in leaks}) == len(leaks), leaks
    for site in report["sites"]:
        there = sum(leak["site"] == site["id"] for leak in leaks)
        assert abs(site["live"]["count"] - there) <= 1, site
        assert site["live"]["count"] <= site["peak"]["count"] <= 1 or site["peak"]["count"] > 1, site
    blocks = sum(site["live"]["count"] for site in report["sites"])
    assert blocks in (1, 2) and abs(blocks - len(leaks)) <= 1, "%d of sites" % blocks
    assert summary["peak_bytes"] == 2 * SIZE and summary["failed"] == 0, summary
    for device in report["devices"]:
        live = device["live"]["bytes"]
        assert live in (0, SIZE, 2 * SIZE) and device["peak"]["bytes"] in (0, 2 * SIZE), device
        assert live == 0 or abs(live - SIZE * len(leaks)) <= SIZE, device
    check_pool(report, len(leaks))


def check_pool(report, live):
    pools = report["pool"]["devices"]
    made, idle = (sum(pool[key] for pool in pools) for key in ("misses", "cached_blocks"))
    assert abs(made - live - idle) <= 1, "%d blocks, %d live, %d idle" % (made, live, idle)
    counts = {key: report["summary"][key] for key in ("allocs", "frees", "pool_hits")}
    for key, value in counts.items():
        assert before.get(key, 0) <= value <= before.get(key, value) + 1, (key, value, before)
    before.update(counts)


for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        try:
            check(json.load(file))
        except (AssertionError, ValueError) as error:
            sys.exit("%s: %s" % (path, error))
