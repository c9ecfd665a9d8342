# SPDX-License-Identifier: MIT
"""Numbers, machines and methods in words."""
from plot_bench.rows import plain_text


def size_text(count):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return "%.3g %s" % (count / unit, name)
    return "%d B" % count


def count_text(count):
    return "{:,}".format(int(count)).replace(",", " ")


def time_text(ns):
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= unit * 0.9999:
            return "%.3g %s" % (ns / unit, name)
    return "%.3g ns" % ns


def where_text(rows):
    machine = rows.machine
    parts = []
    if rows.is_gpu:
        parts.append(plain_text(machine.get("gpu", "unknown GPU"), 50))
        parts += ["%s %s" % (name, plain_text(machine[key], 20))
                  for key, name in (("driver", "driver"), ("cuda", "CUDA")) if machine.get(key)]
    else:
        parts.append("%s, %s cores, over a driver that costs nothing"
                     % (plain_text(machine.get("cpu") or "unknown CPU", 50), plain_text(machine.get("cores", "?"), 6)))
    if machine.get("date"):
        parts.append(plain_text(machine["date"], 10).replace("...", "") if len(str(machine["date"])) <= 10
                     else plain_text(str(machine["date"])[:10]))
    if machine.get("commit"):
        parts.append("commit " + plain_text(machine["commit"], 24))
    return "  ·  ".join(parts)


def method_text(rows):
    if rows.is_gpu:
        return "Medians of several rounds in processes of their own, all contestants of a row in turn; bars of error: half of the " \
               "figures lie within them. Made by scripts/gpu-check."
    machine = rows.machine
    words = [plain_text(machine.get(key, "?"), 10) for key in ("rounds", "loops", "iters", "load")]
    return "The best of %s processes, each of %s loops of %s pairs, all contestants in turn; load of the machine before it: %s. " \
           "What the driver takes is not in it. Made by make bench." % tuple(words)
