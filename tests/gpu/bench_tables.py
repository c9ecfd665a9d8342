#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What bench.py measured, for readers: `bench_tables.py json|markdown FILE...` of the files that it wrote.

json prints the elements of an array: every row, and one for each aim whose rows are all there; of
simulated rows no aim is judged. markdown prints tables. Files that are not there are left out."""
import json
import sys

MIB = 1 << 20
NAMES = {"native": "native", "strict": "strict", "deferred": "deferred", "strict-full": "strict, stacks",
         "track-full": "track, stacks", "async-0": "cudaMallocAsync 0", "async-max": "cudaMallocAsync max",
         "cub": "CUB", "torch": "PyTorch", "rmm": "RMM", "own-cache": "its own cache", "no-cache": "no cache",
         "pool": "strict", "track": "track"}


def read_rows(files):
    rows = []
    for name in files:
        try:
            with open(name, encoding="utf-8") as file:
                rows += [json.loads(line) for line in file]
        except FileNotFoundError:
            pass
    return rows


def of(rows, what, **wanted):
    return [row for row in rows if row["what"] == what and all(row[name] == wanted[name] for name in wanted)]


# ---- the aims ----


def plain_pairs(rows, contestant):
    """ns by size of pairs by one thread in one stream, alone."""
    return {row["bytes"]: row["ns"]
            for row in of(rows, "pair", contestant=contestant, threads=1, streams=1, touch=0)}


def quotients(upper, lower, least_bytes=0):
    return [upper[size] / lower[size] for size in upper if size in lower and size >= least_bytes]


def program_seconds(rows, program, contestant):
    return [row["seconds"] for row in of(rows, "program", program=program, contestant=contestant)]


def first_total(rows, contestant):
    steps = of(rows, "first", contestant=contestant)
    return {"query": sum(row["ms"] for row in steps if row["step"] == "device-query"),
            "use": sum(row["ms"] for row in steps if row["step"] != "device-query")} if steps else {}


def more_in_percent(rows, program, contestant, beside):
    pairs = zip(program_seconds(rows, program, contestant), program_seconds(rows, program, beside))
    return [100 * (seconds / other - 1) for seconds, other in pairs]


def asks(rows):
    """ns by what was asked."""
    return {row["name"]: row["ns"] for row in of(rows, "ask")}


def asks_aims(rows):
    found = asks(rows)

    def less(name, other, over=1):
        return [(found[name] - found[other]) * over] if name in found and other in found else []

    yield ("the best device, percent beyond a pair", less("device_alloc_pair", "pair", 100 / found.get("pair", 1)), "at most", 5)
    yield "a budget, ns beyond an allocation", less("budget_take", "take"), "at most", 5
    for name, text in (("tag_push", "a tag is pushed"), ("tag_pop", "a tag is popped"),
                       ("ensure_capacity", "a buffer that has room")):
        yield f"{text}, ns", [found[name]] if name in found else [], "at most", 10
    yield ("a buffer grows in place by 2 MiB, ms", [found["grow_in_place"] / 1e6] if "grow_in_place" in found else [],
           "at most", 1)


def aims(rows):
    """Yields each aim as name, the figures of which the worst counts, and at least or at most what."""
    native, strict, deferred = (plain_pairs(rows, name) for name in ("native", "strict", "deferred"))
    kept = plain_pairs(rows, "async-max")
    yield "native over strict, pairs of 1 MiB and more", quotients(native, strict, MIB), "at least", 20
    yield "deferred pair, us", [ns / 1000 for ns in deferred.values()], "at most", 1
    yield "cudaMallocAsync over deferred, pairs", quotients(kept, deferred), "at least", 2
    for contestant in ("pool", "deferred"):
        yield (f"PyTorch without its cache, {NAMES[contestant]}, over its own cache, percent",
               more_in_percent(rows, "torch_train", contestant, "own-cache"), "at most", 5)
    yield "track with stacks, heavy, percent", more_in_percent(rows, "heavy", "track-full", "native"), "at most", 1
    yield ("track with stacks, torch_train, percent", more_in_percent(rows, "torch_train", "track-full", "own-cache"),
           "at most", 1)
    without, with_pool = first_total(rows, "native"), first_total(rows, "pool")
    for part, name in (("query", "device query"), ("use", "first use")):
        added = [with_pool[part] - without[part]] if part in without and part in with_pool else []
        yield f"{name}, ms beyond the driver's own", added, "at most", 10
    yield from asks_aims(rows)


def aim_rows(rows):
    if any(row.get("simulated") for row in rows):
        return []
    judged = []
    for name, figures, sense, limit in aims(rows):
        if figures:
            figure = min(figures) if sense == "at least" else max(figures)
            judged.append({"what": "aim", "name": name, "figure": float(f"{figure:.4g}"), "wanted": f"{sense} {limit}",
                           "reached": figure >= limit if sense == "at least" else figure <= limit})
    return judged


# ---- Markdown ----


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} B"


def ns_text(row):
    return f"{row['ns']:.0f}" if row["ns"] >= 100 else f"{row['ns']:.3g}"


def table(heads, lines):
    return ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"] + \
           ["| " + " | ".join(line) + " |" for line in lines] + [""]


def pair_table(rows, title, keys, texts):
    """A line for each different value of the keys, a column for each contestant."""
    places = list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))
    contestants = list(dict.fromkeys(row["contestant"] for row in rows))
    lines = []
    for place in places:
        cells = {row["contestant"]: ns_text(row) for row in rows if tuple(row[key] for key in keys) == place}
        lines.append([text(value) for text, value in zip(texts, place)] + [cells.get(name, "-") for name in contestants])
    return [title, ""] + table(list(keys) + [NAMES[name] for name in contestants], lines) if rows else []


def pair_tables(rows):
    pairs = of(rows, "pair")
    threads = [row for row in pairs if row["bytes"] == MIB and row["streams"] == 1 and not row["touch"]]
    return (pair_table([row for row in pairs if row["threads"] == 1 and row["streams"] == 1 and not row["touch"]],
                       "One allocation and its free, one thread, ns:", ("bytes",), (size_text,)) +
            pair_table([row for row in pairs if row["touch"]],
                       "With a fill of 4 KiB in between, in as many streams in turn, ns:", ("bytes", "streams"),
                       (size_text, str)) +
            pair_table(of(rows, "pair-sync"), "The same in one stream, and the device synchronised after each, ns:",
                       ("bytes",), (size_text,)) +
            pair_table(threads, "1 MiB, several threads at the same time, ns for a pair of each:", ("threads",), (str,)))


def program_tables(rows):
    text = []
    for program in dict.fromkeys(row["program"] for row in of(rows, "program")):
        entries = of(rows, "program", program=program)
        overheads = {row["contestant"]: row for row in of(rows, "memory", program=program)}
        lines = []
        for row in entries:
            memory = overheads.get(row["contestant"])
            lines.append([NAMES[row["contestant"]], f"{row['seconds']:.4g}", f"{100 * row['spread']:.1f} %",
                          f"{row['seconds'] / entries[0]['seconds']:.3f}", size_text(row["peak_bytes"]),
                          f"{100 * memory['overhead']:+.1f} %" if memory else "-",
                          size_text(memory["reported_peak"]) if memory else "-"])
        text += [f"The program {program}: a repeat of its steps, and the most that it used of the device, its context "
                 "included:", ""]
        text += table(["memory from", "s", "spread", f"over {NAMES[entries[0]['contestant']]}", "peak", "beyond",
                       "peak in the report"], lines)
    return text


def first_table(rows):
    entries = of(rows, "first")
    contestants = list(dict.fromkeys(row["contestant"] for row in entries))
    lines = []
    for step in dict.fromkeys(row["step"] for row in entries):
        cells = {row["contestant"]: f"{row['ms']:.2f}" for row in entries if row["step"] == step}
        lines.append([step] + [cells.get(name, "-") for name in contestants])
    return ["The first use of the device, ms; device-query is a whole process:", ""] + \
        table(["step"] + [NAMES[name] for name in contestants], lines) if entries else []


def asks_table(rows):
    lines = [[row["name"], ns_text(row), f"{100 * row['spread']:.1f} %"] for row in of(rows, "ask")]
    return ["What a program asks for, the best of many, ns:", ""] + table(["question", "ns", "spread"], lines) if lines else []


def aims_table(rows):
    judged = aim_rows(rows)
    lines = [[row["name"], f"{row['figure']:.4g}", row["wanted"], "yes" if row["reached"] else "no"] for row in judged]
    return ["The worst figure of each:", ""] + table(["aim", "figure", "wanted", "reached"], lines) if judged else []


def markdown(rows):
    if not rows:
        return
    print("## Benchmarks\n")
    if any(row.get("simulated") for row in rows):
        print("**Simulated: these figures say nothing of a GPU.**\n")
    text = "\n".join(pair_tables(rows) + program_tables(rows) + first_table(rows) + asks_table(rows) +
                     aims_table(rows))
    print(text.rstrip("\n"))


def main(arguments):
    if not arguments or arguments[0] not in ("json", "markdown"):
        sys.exit("bench_tables.py: json or markdown, please, and files")
    rows = read_rows(arguments[1:])
    if arguments[0] == "markdown":
        markdown(rows)
    else:
        print(",\n".join("    " + json.dumps(row) for row in rows + aim_rows(rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
