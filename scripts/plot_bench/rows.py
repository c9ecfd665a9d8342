# SPDX-License-Identifier: MIT
"""The contestants, and the rows of a file that can be plotted."""
import json
import math
import sys
from collections import Counter


def die(text, status=1):
    print("plot-bench: " + text, file=sys.stderr)
    sys.exit(status)


# ---- contestants ----


class Look:
    """Name and style of a contestant, the same in all plots."""

    def __init__(self, label, color, marker, dashes="-"):
        self.label, self.color, self.marker, self.dashes = label, color, marker, dashes
        self.is_ours = label.startswith("cuwarden")


# In the order of bars. Colours also differ in lightness, to be distinguishable by the colour-blind and on
# paper; no two allocators have the same marker.
LOOKS = {
    "native": Look("driver alone", "#5a5a5a", "s"),
    "no-cache": Look("no cache", "#5a5a5a", "s"),
    "own-cache": Look("PyTorch's cache", "#b0307a", "D"),
    "async-0": Look("cudaMallocAsync, threshold 0", "#a58a2c", "v", "--"),
    "async-max": Look("cudaMallocAsync, threshold max", "#7d6200", "^"),
    "cub": Look("CUB", "#d1480c", "P"),
    "torch": Look("PyTorch", "#b0307a", "D"),
    "rmm": Look("RMM", "#2b7d3f", "X"),
    "rmm-arena": Look("RMM, arena", "#63ad74", "X", "--"),
    "off": Look("cuwarden, MODE=off", "#8fb8d8", "o"),
    "track": Look("cuwarden, MODE=track", "#5f9bcb", "o"),
    "track-full": Look("cuwarden, track, full stacks", "#5f9bcb", "h"),
    "pool": Look("cuwarden", "#0060b0", "o"),
    "strict": Look("cuwarden", "#0060b0", "o"),
    "caller": Look("cuwarden, STACKS=caller", "#00468a", "o"),
    "strict-full": Look("cuwarden, full stacks", "#002f66", "p"),
    "deferred": Look("cuwarden, deferred", "#2f9be6", "*"),
    "limited": Look("cuwarden, LIMIT and MIN_FREE", "#0060b0", "o"),
}

# Names used by `make bench`, in lower case.
CALLED = {
    "plain": "native",
    "pytorch": "torch",
    "rmm pool": "rmm",
    "rmm-pool": "rmm",
    "rmm arena": "rmm-arena",
    "mode=off": "off",
    "mode=track": "track",
    "stacks=off": "strict",
    "stacks=caller": "caller",
    "stacks=full": "strict-full",
    "free_sync=deferred": "deferred",
    "limit and min_free": "limited",
}
# The same with MODE=track, without a pool; None: too similar to be plotted.
CALLED_TRACK = {"stacks=off": "track", "stacks=caller": None, "stacks=full": "track-full"}

STEPS = {
    "init": "cuInit",
    "first-context": "first context",
    "first-alloc": "first allocation",
    "device-query": "a query of the device",
    "exit": "exit",
    "true": "a process that does nothing, spawn to end",
    "cuInit": "a process that only calls cuInit, spawn to end",
}


def id_of(row):
    name = row.get("contestant")
    if not isinstance(name, str):
        return None
    name = name.lower()
    if row.get("mode") == "track" and name in CALLED_TRACK:
        return CALLED_TRACK[name]
    name = CALLED.get(name, name)
    return name if name in LOOKS else None


# ---- the file ----


def is_number(value, least=0.0):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= least


def plain_text(value, longest=70):
    """The file's text as one line that any font can show."""
    text = "".join(c if " " <= c <= "~" else " " for c in str(value))
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


class Rows:
    """The rows that can be plotted, by kind, and a count of those skipped."""

    def __init__(self):
        self.machine = {}
        self.is_gpu = False
        self.pairs, self.programs, self.firsts = [], [], []
        self.kept_out = Counter()

    def add(self, row):
        kind = row.get("what")
        if kind == "machine":
            self.machine = row
        elif kind in ("aim", "ask", "memory", "pair-sync"):
            pass  # for the tables
        elif kind == "start":
            self.add_start(row)
        elif kind not in ("pair", "program", "first"):
            self.kept_out["of an unknown kind"] += 1
        elif id_of(row) is None:
            self.kept_out["of an unknown contestant"] += 1
        elif not getattr(self, "add_" + kind)(row):
            self.kept_out["without their numbers"] += 1

    def add_pair(self, row):
        pair = {"id": id_of(row), "has_bytes": "bytes" in row, "simulated": row.get("simulated") is True}
        standard = (("bytes", 4096), ("threads", 1), ("streams", 1), ("live", 0), ("touch", 0), ("depth", 0), ("sync", 0))
        for key, value in standard:
            pair[key] = row.get(key, value)
            if not is_number(pair[key], 1 if key in ("bytes", "threads", "streams") else 0):
                return False
        for key, value in (("pattern", "last"), ("kind", "device"), ("low", ""), ("high", "")):
            pair[key] = row.get(key, value)
        pair["ns"], pair["spread"] = row.get("ns"), row.get("spread", 0)
        if not is_number(pair["ns"], 1e-3) or not is_number(pair["spread"]):
            return False
        self.pairs.append(pair)
        return True

    def add_program(self, row):
        seconds, spread, peak = row.get("seconds"), row.get("spread", 0), row.get("peak_bytes")
        if not isinstance(row.get("program"), str) or not is_number(seconds, 1e-6) or not is_number(spread):
            return False
        if peak is not None and not is_number(peak, 1):
            return False
        self.programs.append({"id": id_of(row), "program": plain_text(row["program"], 40), "seconds": seconds,
                              "spread": spread, "peak": peak, "simulated": row.get("simulated") is True})
        return True

    def add_first(self, row):
        if not isinstance(row.get("step"), str) or not is_number(row.get("ms")):
            return False
        step = STEPS.get(row["step"], plain_text(row["step"], 40))
        self.firsts.append({"id": id_of(row), "step": step, "ms": row["ms"], "simulated": row.get("simulated") is True})
        return True

    def add_start(self, row):
        added = (("native", 0.0), ("off", row.get("off_added_ms")), ("pool", row.get("default_added_ms")))
        for contestant, ms in added:
            if not (is_number(row.get("plain_ms")) and is_number(ms, -1e9) and
                    self.add_first({"contestant": contestant, "step": row.get("program"), "ms": row["plain_ms"] + ms})):
                self.kept_out["without their numbers"] += 1


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        die("cannot read %s: %s" % (path, getattr(error, "strerror", None) or "it is not UTF-8"))
    rows = Rows()
    whole = None
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        pass
    if isinstance(whole, dict) and "what" not in whole:
        bench = whole.get("bench")
        if not isinstance(bench, list):
            die('%s has no list "bench"; give DATE-GPU.json of scripts/gpu-check, or bench.json of `make bench`' % path)
        rows.machine, rows.is_gpu = whole, True
    else:
        bench = list_of_lines(path, text)
    for row in bench:
        if isinstance(row, dict):
            rows.add(row)
        else:
            rows.kept_out["of an unknown kind"] += 1
    return rows


def list_of_lines(path, text):
    bench = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                bench.append(json.loads(line))
            except (ValueError, RecursionError):
                die("%s, line %d is not JSON; give DATE-GPU.json of scripts/gpu-check, or bench.json of `make bench`"
                    % (path, number))
    return bench
