#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The traces of tests/bench/traces under all policies of `cuwarden replay`, as Markdown:

    trace_tables.py COMMAND WORKDIR JSON TRACE...

COMMAND is the cuwarden to run. Rows go to the file JSON, one object a line; what is held against the aims
to WORKDIR/traces.figures, a NAME=FIGURE a line. TORCH and RMM in the environment are programs of
torch_pairs.cpp and rmm_pairs.cpp: the models of those allocators are held against the allocators themselves.

Each trace is played on a device so large that nothing is short, and on one of 1.6 times what the program
needs at its peak. A policy's hits, efficiency and fragmentation are of device memory alone."""
import gzip
import json
import os
import shutil
import subprocess
import sys

LARGE = 80 << 30
TIGHT = 1.6
LEAST_DEVICE = 64 << 20
PAGE = 2 << 20
MIB = 1 << 20
# Less than this is not worth a word, whatever share it is of a small program.
WORTH_COUNTING = 32 * MIB

NAMES = {"pool": "default", "pytorch": "PyTorch", "rmm": "RMM"}
SHOWN = ("pool", "inference", "constrained", "deferred", "unbounded", "pytorch", "rmm")
COMPARED = ("pool", "inference", "constrained", "pytorch", "rmm")


class Figures:
    """Of one policy and one trace."""

    def __init__(self, policy, possible):
        devices = [device for device in policy["devices"] if device["device"] != "host"]

        def total(key):
            return sum(device[key] for device in devices)

        self.requests, self.hits = total("poolable"), total("served")
        self.live, self.held = total("peak_live_bytes"), total("peak_held_bytes")
        self.possible = self.hits / possible if possible else None
        self.efficiency, self.fragmentation = policy["efficiency_total"], policy["fragmentation"]
        self.calls = policy["driver"]["allocations"] + policy["driver"]["frees"]
        self.failed = policy["failed"]

    def counted_fragmentation(self):
        return self.fragmentation if self.held - self.live >= WORTH_COUNTING else 0.0


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def size(number):
    for unit in ("B", "KiB", "MiB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} GiB"


def replay(command, trace, device):
    out = subprocess.run([command, "replay", "--compare", "--format=json", f"--device-size={device}", trace],
                         check=True, stdout=subprocess.PIPE).stdout
    result = json.loads(out)
    policies = {policy["policy"]: policy for policy in result["policies"]}
    possible = Figures(policies["unbounded"], 0).hits
    return {name: Figures(policy, possible) for name, policy in policies.items()}


def tight_device(figures):
    return max(LEAST_DEVICE, int(TIGHT * figures["native"].live) // PAGE * PAGE)


def name_of(trace):
    return os.path.basename(trace).split(".")[0]


def print_row(cells, widths):
    print("|" + "|".join(f" {cell:>{width}} " for cell, width in zip(cells, widths)) + "|")


def print_table(heading, rows):
    widths = [max(len(row[i]) for row in [heading] + rows) for i in range(len(heading))]
    print_row(heading, widths)
    print("|" + "---|" * len(heading))
    for row in rows:
        print_row(row, widths)


def print_large(results):
    print("Traces of programs (tests/bench/traces), replayed on a device of 80 GiB under the policies of")
    print("`cuwarden replay --compare`. Of possible: hits over those of a cache without bounds.")
    print("Fragmentation: of the peaks. Calls: allocations and frees that reach the driver.")
    print()
    rows = []
    for trace, large, _, _ in results:
        for policy in SHOWN:
            figures = large[policy]
            rows.append([trace, NAMES.get(policy, policy), str(figures.requests),
                         percent(figures.hits / figures.requests if figures.requests else None),
                         percent(figures.possible), percent(figures.efficiency), percent(figures.fragmentation),
                         size(figures.live), size(figures.held), str(figures.calls)])
    print_table(["trace", "policy", "requests", "hits", "of possible", "efficiency", "fragmentation", "peak live",
                 "peak held", "calls"], rows)


def print_tight(results):
    print(f"The same on a device of {TIGHT} times the peak of what is live: of possible, fragmentation; how many")
    print("requests fail, most of them because the replay's device wants one piece of memory for each.")
    print()
    rows = []
    for trace, _, tight, device in results:
        row = [trace, size(device)]
        for policy in COMPARED:
            figures = tight[policy]
            failed = f", {figures.failed} fail" if figures.failed else ""
            row.append("does not fit" if 2 * figures.failed > figures.requests else
                       f"{percent(figures.possible)}, {percent(figures.fragmentation)}{failed}")
        rows.append(row)
    print_table(["trace", "device"] + [NAMES.get(policy, policy) for policy in COMPARED], rows)


def write_rows(results, path):
    with open(path, "a", encoding="utf-8") as file:
        for trace, large, tight, device in results:
            for bytes_there, by_policy in ((LARGE, large), (device, tight)):
                for policy, figures in by_policy.items():
                    row = {"what": "trace", "trace": trace, "device_bytes": bytes_there, "policy": policy,
                           "requests": figures.requests, "hits": figures.hits, "of_possible": figures.possible,
                           "efficiency": figures.efficiency, "fragmentation": figures.fragmentation,
                           "peak_live_bytes": figures.live, "peak_held_bytes": figures.held,
                           "driver_calls": figures.calls, "failed": figures.failed}
                    file.write(json.dumps({key: value for key, value in row.items() if value is not None}) + "\n")


def write_figures(results, path):
    """The worst trace of each aim, by name."""
    default = [(trace, large["pool"], tight["pool"]) for trace, large, tight, _ in results]

    def worst(choose, of):
        return choose((of(large, tight), trace) for trace, large, tight in default)

    hits, hits_in = worst(min, lambda large, _: large.possible or 0.0)
    efficiency, efficiency_in = worst(min, lambda large, _: large.efficiency or 0.0)
    fragmentation, fragmentation_in = worst(max, lambda _, tight: tight.counted_fragmentation())
    tight_hits, tight_hits_in = worst(min, lambda _, tight: tight.possible or 0.0)
    failed, failed_in = worst(max, lambda _, tight: tight.failed)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"hits={hits:.4f}\nhits_in={hits_in}\n"
                   f"efficiency={efficiency:.4f}\nefficiency_in={efficiency_in}\n"
                   f"fragmentation={fragmentation:.4f}\nfragmentation_in={fragmentation_in}\n"
                   f"tight_hits={tight_hits:.4f}\ntight_hits_in={tight_hits_in}\n"
                   f"failed={failed}\nfailed_in={failed_in}\n")


def play(program, plain, *words):
    """Blocks taken, those that reached the driver, their bytes; None where it had no memory."""
    done = subprocess.run([program, f"trace={plain}", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False)
    return [int(word) for word in done.stdout.split()] if done.returncode == 0 else None


def is_as_model(found, figures):
    if found is None or figures.failed:
        return found is None and figures.failed > 0
    return found == [figures.requests, figures.requests - figures.hits, figures.held]


def check_models(results, traces, work):
    """Hits, and bytes held at the peak, of the allocators themselves over the runtime that costs nothing."""
    plain = os.path.join(work, "trace.csv")
    for variable, policy in (("TORCH", "pytorch"), ("RMM", "rmm")):
        program = os.environ.get(variable)
        if not program:
            continue
        others = []
        for path, (trace, large, tight, device) in zip(traces, results):
            with gzip.open(path, "rb") as packed, open(plain, "wb") as file:
                shutil.copyfileobj(packed, file)
            good = is_as_model(play(program, plain), large[policy])
            if policy == "rmm":  # which never gives anything back, so that the size of the device is all
                good = good and is_as_model(play(program, plain, f"device={device}"), tight[policy])
            if not good:
                others.append(trace)
        same = f"on {len(traces) - len(others)} of {len(traces)} traces"
        print(f"The model of {NAMES[policy]} comes to the hits and bytes of the installed {NAMES[policy]} {same}" +
              (f"; not on {', '.join(others)}" if others else ""))


def main(command, work, rows, *traces):
    results = []
    for trace in traces:
        large = replay(command, trace, LARGE)
        device = tight_device(large)
        results.append((name_of(trace), large, replay(command, trace, device), device))
    print_large(results)
    print()
    print_tight(results)
    if os.environ.get("TORCH") or os.environ.get("RMM"):
        print()
        check_models(results, traces, work)
    write_rows(results, rows)
    write_figures(results, os.path.join(work, "traces.figures"))


if __name__ == "__main__":
    main(*sys.argv[1:])
