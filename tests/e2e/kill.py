# SPDX-License-Identifier: MIT
"""Ends a busy program of several threads at random moments, in all the ways there are, and holds the
report that is made of its live file against what always holds of it.

kill.py COMMAND KILLS OTHERS PROGRAM...   the environment is the program's
"""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

command, kills, others, program = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
IN_FLIGHT = 5  # threads, each in one call
LARGEST = 70000
SIZES = {100, 1000, 3000, 70000}
counts = {"reports": 0, "of 50 blocks and more": 0, "no file yet": 0, "most blocks apart": 0}


def check_sites(report):
    """Returns how many blocks the sites have live, and how many bytes."""
    blocks = size = 0
    for site in report["sites"]:
        live, total, peak = site["live"], site["total"], site["peak"]
        gone = site["frees"] + site["reclaimed"]["count"]
        assert site["api"] in ("cuMemAlloc", "cuMemFree"), site
        assert abs(live["count"] - (total["count"] - gone)) <= IN_FLIGHT, site
        assert live["count"] <= peak["count"] + IN_FLIGHT, site
        assert live["bytes"] <= peak["bytes"] + IN_FLIGHT * LARGEST, site
        blocks += live["count"]
        size += live["bytes"]
    return blocks, size


def check_blocks(report):
    frames = {frame["id"] for frame in report["frames"]}
    stacks = {stack["id"]: stack["frames"] for stack in report["stacks"]}
    sites = {site["id"]: site for site in report["sites"]}
    pointers = [leak["ptr"] for leak in report["leaks"]]
    assert all(set(stack) <= frames for stack in stacks.values()), "a stack with unknown frames"
    for leak in report["leaks"]:
        assert leak["bytes"] in SIZES and leak["held"] >= leak["bytes"], leak
        assert leak["site"] in sites and sites[leak["site"]]["stack"] in stacks, leak
    assert len(pointers) - len(set(pointers)) <= IN_FLIGHT, "blocks at one address"


def check(report):
    check_blocks(report)
    blocks, size = check_sites(report)
    apart = abs(blocks - len(report["leaks"]) - report.get("leaks_truncated", 0))
    assert apart <= IN_FLIGHT, "sites have %d blocks, %d are there" % (blocks, len(report["leaks"]))
    counts["most blocks apart"] = max(counts["most blocks apart"], apart)
    if "leaks_truncated" not in report:
        there = sum(leak["bytes"] for leak in report["leaks"])
        assert abs(size - there) <= IN_FLIGHT * LARGEST, "%d bytes and %d" % (size, there)
    for device in report["devices"]:
        assert device["live"]["bytes"] <= device["peak"]["bytes"] + IN_FLIGHT * LARGEST, device
        assert abs(device["live"]["bytes"] - size) <= IN_FLIGHT * LARGEST, device
    summary = report["summary"]
    assert summary["allocs"] - summary["frees"] - blocks <= IN_FLIGHT, summary
    assert summary["failed"] == 0, summary


def report_on(path, kind):
    made = subprocess.run([command, "report", "--format=json", path], capture_output=True)
    assert made.returncode == 0 and not made.stderr, made.stderr
    report = json.loads(made.stdout)
    assert report["process"]["exit"]["kind"] == kind, report["process"]
    check(report)
    counts["reports"] += 1
    counts["of 50 blocks and more"] += len(report["leaks"]) >= 50


def end(number, way):
    """Runs the program and ends it at a random moment; `way` is a signal, or a word for it."""
    shutil.rmtree("kept", ignore_errors=True)
    is_at_work = number % 2 == 0  # else on its way to work, or there already
    delay = random.Random(number).expovariate(6 if is_at_work else 50)
    words = ["threads"] if isinstance(way, int) else ["after=%d" % (delay * 1e6), way, "threads"]
    victim = subprocess.Popen(program + words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env=dict(os.environ, CUWARDEN_LIVE=os.path.abspath("kept"),
                                       LD_PRELOAD=os.environ["VICTIM_PRELOAD"]))
    if isinstance(way, int):
        while is_at_work and victim.poll() is None and not glob.glob("kept/*.live"):
            time.sleep(0.001)
        time.sleep(delay)
        victim.send_signal(way)
    said = victim.communicate()[1]
    assert not [line for line in said.splitlines() if not line.startswith(b"==")], said
    expected = -way if isinstance(way, int) else {"abort": -6, "segv": -11}.get(way, 0)
    assert victim.returncode == expected, "%s: %d" % (way, victim.returncode)
    files = glob.glob("kept/*.live")
    counts["no file yet"] += not files
    for path in files:
        report_on(path, "_exit" if way == "_exit" else "died")


ended = 0
ways = [(i, signal.SIGKILL) for i in range(kills)]
ways += [(i, way) for i in range(others)
         for way in (signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV, "abort", "segv", "_exit", "exec")]
# On a busy machine too few of them have come to something: those at work go on until there are enough.
while ways or counts["reports"] < kills // 2 or counts["of 50 blocks and more"] < kills // 10:
    number, way = ways.pop(0) if ways else (2 * ended, signal.SIGKILL)
    try:
        end(number, way)
    except (AssertionError, ValueError) as error:
        sys.exit("number %d, %s: %s" % (number, way, error))
    ended += 1
    if ended > 20 * kills:
        sys.exit("too few of %d have a file, or something in it, which proves nothing: %s" % (ended, counts))
print("%d ends: %s" % (ended, counts))
