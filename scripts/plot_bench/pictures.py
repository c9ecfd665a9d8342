# SPDX-License-Identifier: MIT
"""The plots: each function returns its sheet, or None if the rows are missing."""
import math

from plot_bench.rows import LOOKS, is_number
from plot_bench.sheet import (MARGIN, SIZE, WIDTH, INK, Sheet, bars_height, draw_bars, draw_lines, fit_x, fit_y, label_ends,
                              label_room)
from plot_bench.words import count_text, size_text, time_text

# Lines equivalent to one of these are shown only in the plot of the settings.
LINES = ("native", "async-0", "async-max", "cub", "torch", "rmm", "rmm-arena", "track-full", "strict", "strict-full", "deferred")


def simple_pairs(rows, **wanted):
    """Pairs with exactly these values; None: any value."""
    wanted = dict({"pattern": "last", "kind": "device", "threads": 1, "streams": 1, "live": 0, "touch": 0, "depth": 0,
                   "sync": 0, "bytes": None}, **wanted)
    return [pair for pair in rows.pairs if all(value is None or pair[key] == value for key, value in wanted.items())]


def series_of(pairs, key, value_of=lambda pair: pair["ns"]):
    """Lines over that key: the first of repeated measurements, and no lines of one point."""
    series = []
    for name in LINES:
        points = {}
        for pair in pairs:
            if pair["id"] == name:
                points.setdefault(pair[key], (value_of(pair), pair["spread"]))
        if len(points) > 1:
            series.append((name, [(x,) + points[x] for x in sorted(points)]))
    return series


def used_of(pairs, series):
    names = {name for name, _ in series}
    return [pair for pair in pairs if pair["id"] in names]


def plot_size(rows, touch=0):
    pairs = [pair for pair in simple_pairs(rows, touch=touch) if pair["has_bytes"]]
    series = series_of(pairs, "bytes")
    if not series:
        return None
    title = "One allocation and its free, by size"
    caption = "Both axes are logarithmic."
    if touch:
        title += ", with work in between"
        caption = "Between the two the program fills up to 4 KiB of the block, asynchronously. " + caption
    sheet = Sheet(rows, used_of(pairs, series), title, caption, 4.3)
    room = label_room([name for name, _ in series])
    axes = sheet.axes(0.85, 0.6, WIDTH - 0.85 - room, 3.55)
    draw_lines(axes, [(name, [(math.log2(x), y, spread) for x, y, spread in points]) for name, points in series])
    sizes = sorted({point[0] for _, points in series for point in points})
    fit_x(axes, [math.log2(size) for size in sizes], [size_text(size) for size in sizes], WIDTH - 0.85 - room)
    fit_y([axes], [point[1] for _, points in series for point in points])
    axes.set_xlabel("size of the block")
    axes.set_ylabel("time of one pair")
    label_ends(axes, [(name, math.log2(points[-1][0]), points[-1][1]) for name, points in series])
    return sheet


def plot_touched(rows):
    return plot_size(rows, 1)


def plot_live(rows):
    panels = []
    for pattern, title in (("last", "the last one is freed"), ("any", "any one is freed, at random")):
        pairs = simple_pairs(rows, pattern=pattern, live=None, bytes=4096)
        series = series_of(pairs, "live")
        if series:
            panels.append((title, pairs, series))
    if not panels:
        return None
    used = [pair for _, pairs, series in panels for pair in used_of(pairs, series)]
    sheet = Sheet(rows, used, "One pair beside many live blocks", "Blocks of 4 KiB, one thread; the y axis is logarithmic.", 4.3)
    counts = sorted({point[0] for _, _, series in panels for _, points in series for point in points})
    rooms = [label_room([name for name, _ in series]) for _, _, series in panels]
    width = (WIDTH - 0.85 - sum(rooms)) / len(panels)
    left, all_axes = 0.85, []
    for (title, _, series), room in zip(panels, rooms):
        axes = sheet.axes(left, 0.6, width, 3.35)
        draw_lines(axes, [(name, [(counts.index(x), y, spread) for x, y, spread in points]) for name, points in series])
        fit_x(axes, range(len(counts)), [count_text(count) for count in counts], width)
        axes.set_title(title, size=SIZE, loc="left", color=INK)
        axes.set_xlabel("live blocks")
        left += width + room
        all_axes.append(axes)
    all_axes[0].set_ylabel("time of one pair")
    fit_y(all_axes, [point[1] for _, _, series in panels for _, points in series for point in points])
    for axes, (_, _, series) in zip(all_axes, panels):
        label_ends(axes, [(name, counts.index(points[-1][0]), points[-1][1]) for name, points in series])
    return sheet


def best_size(pairs, key):
    """The pairs of the size for which most lines have points over that key."""
    sizes = sorted({pair["bytes"] for pair in pairs})
    if not sizes:
        return [], []
    choices = [[pair for pair in pairs if pair["bytes"] == size] for size in sizes]
    best = max(choices, key=lambda choice: sum(len(points) for _, points in series_of(choice, key)))
    return best, series_of(best, key)


def rate_text(rate):
    return "%g" % rate


def plot_scaling(rows):
    panels = []
    for key, label in (("threads", "threads"), ("streams", "streams that the thread goes round")):
        pairs, _ = best_size(simple_pairs(rows, **{key: None}), key)
        series = series_of(pairs, key, lambda pair: pair["threads"] * 1e3 / pair["ns"])
        if series:
            panels.append((label, key, pairs, series))
    if not panels:
        return None
    used = [pair for _, _, pairs, series in panels for pair in used_of(pairs, series)]
    caption = "Pairs that all threads make together; what is higher is better. Both axes are logarithmic. Dotted: twice as many " \
              "threads, twice as many pairs."
    sheet = Sheet(rows, used, "Pairs per second, by threads" + (" and streams" if len(panels) > 1 else ""), caption, 4.3)
    rooms = [label_room([name for name, _ in series]) for _, _, _, series in panels]
    width = (WIDTH - 0.85 - sum(rooms)) / len(panels)
    left, all_axes = 0.85, []
    for (label, key, pairs, series), room in zip(panels, rooms):
        axes = sheet.axes(left, 0.6, width, 3.35)
        draw_lines(axes, [(name, [(math.log2(x), y, spread) for x, y, spread in points]) for name, points in series])
        counts = sorted({point[0] for _, points in series for point in points})
        fit_x(axes, [math.log2(count) for count in counts], [count_text(count) for count in counts], width)
        axes.set_title("%s each" % size_text(pairs[0]["bytes"]), size=SIZE, loc="left", color=INK)
        axes.set_xlabel(label)
        left += width + room
        all_axes.append(axes)
        if key == "threads":
            for name, points in series:
                axes.plot([math.log2(count) for count in counts], [points[0][1] * count / points[0][0] for count in counts], ":",
                          color=LOOKS[name].color, linewidth=1, alpha=0.7, zorder=1)
    all_axes[0].set_ylabel("million pairs per second")
    fit_y(all_axes, [point[1] for _, _, _, series in panels for _, points in series for point in points], rate_text)
    for axes, (_, _, _, series) in zip(all_axes, panels):
        label_ends(axes, [(name, math.log2(points[-1][0]), points[-1][1]) for name, points in series])
    return sheet


SETTINGS = (  # descriptions of pairs by their other work
    ({}, ""),
    ({"depth": 8}, ", 8 more frames"),
    ({"depth": 24}, ", 24 more frames"),
    ({"sync": 100}, ", synchronised every 100"),
    ({"kind": "pinned"}, ", pinned host memory"),
    ({"kind": "pitched"}, ", pitched"),
)
SETTING_TEXT = {"track": "MODE=track, STACKS=off", "off": "MODE=off", "strict": "STACKS=off", "caller": "STACKS=caller",
                "strict-full": "STACKS=full", "deferred": "FREE_SYNC=deferred", "limited": "LIMIT=64G, MIN_FREE=1G"}


def plot_settings(rows):
    if rows.is_gpu:
        return None
    others, ours, used = [], [], []
    for name, look in LOOKS.items():
        for more, text in SETTINGS:
            pairs = [pair for pair in simple_pairs(rows, bytes=4096, **more) if pair["id"] == name]
            if not pairs or (more and not look.is_ours):
                continue
            label = SETTING_TEXT.get(name, look.label) + text
            (ours if look.is_ours else others).append((label, name, pairs[0]["ns"], pairs[0]["spread"], time_text(pairs[0]["ns"])))
            used.append(pairs[0])
    if not ours or not others:
        return None
    groups = [("other allocators", others), ("cuwarden", ours)]
    height = bars_height(groups)
    sheet = Sheet(rows, used, "What a setting costs", "Pairs of 4 KiB, one thread, nothing else live.", height)
    draw_bars(sheet, groups, "nanoseconds for one pair", height)
    return sheet


def plot_mix(rows):
    groups, used = [], []
    mixes = [pair for pair in rows.pairs if pair["pattern"] == "mix" and is_number(pair["low"], 1) and is_number(pair["high"], 1)]
    for low, high in sorted({(pair["low"], pair["high"]) for pair in mixes}):
        bars = []
        for name in LINES:
            pairs = [pair for pair in mixes if pair["id"] == name and (pair["low"], pair["high"]) == (low, high)]
            if pairs:
                bars.append((LOOKS[name].label, name, pairs[0]["ns"], pairs[0]["spread"], time_text(pairs[0]["ns"])))
                used.append(pairs[0])
        groups.append(("%s to %s" % (size_text(low), size_text(high)), bars))
    groups = [group for group in groups if len(group[1]) > 1]
    if not groups:
        return None
    caption = "One of 64 blocks is freed at random, and one of a random size taken; the sizes are spread evenly over the octaves."
    height = bars_height(groups)
    sheet = Sheet(rows, used, "Blocks of mixed sizes", caption, height)
    draw_bars(sheet, groups, "nanoseconds for one step", height)
    return sheet


def baseline_of(programs):
    for name in ("native", "own-cache"):
        for row in programs:
            if row["id"] == name:
                return row
    return None


def program_groups(rows, key, text_of):
    groups, used = [], []
    for program in dict.fromkeys(row["program"] for row in rows.programs):
        members = [row for row in rows.programs if row["program"] == program and row[key]]
        members.sort(key=lambda row: list(LOOKS).index(row["id"]))
        base = baseline_of(members)
        if base is None or len(members) < 2:
            continue
        bars = [(LOOKS[row["id"]].label, row["id"], row[key] / base[key], row["spread"] if key == "seconds" else 0,
                 text_of(row, base)) for row in members]
        groups.append(("%s (1 is: %s)" % (program, LOOKS[base["id"]].label), bars))
        used += members
    return groups, used


def plot_programs(rows):
    groups, used = program_groups(rows, "seconds", lambda row, base: "%.3f   %.3g s" % (row["seconds"] / base["seconds"], row["seconds"]))
    if not groups:
        return None
    height = bars_height(groups)
    sheet = Sheet(rows, used, "Whole programs, beside themselves without the library", "What is shorter is better.", height)
    draw_bars(sheet, groups, "time, in times that of the dashed line", height, reference=1)
    return sheet


def plot_peak(rows):
    groups, used = program_groups(rows, "peak", lambda row, base: "%s   %+.1f %%" % (
        size_text(row["peak"]), 100 * (row["peak"] / base["peak"] - 1)))
    if not groups:
        return None
    height = bars_height(groups)
    sheet = Sheet(rows, used, "Peak device memory of whole programs", "What is shorter is better.", height)
    draw_bars(sheet, groups, "peak memory, in times that of the dashed line", height, reference=1)
    return sheet


def plot_first(rows):
    groups, used = [], []
    for step in dict.fromkeys(row["step"] for row in rows.firsts):
        members = [row for row in rows.firsts if row["step"] == step]
        members.sort(key=lambda row: list(LOOKS).index(row["id"]))
        native = next((row["ms"] for row in members if row["id"] == "native"), None)
        bars = []
        for row in members:
            text = "%.3g ms" % row["ms"]
            if native is not None and row["id"] != "native":
                text += "   %+.3g ms" % (row["ms"] - native)
            bars.append((LOOKS[row["id"]].label, row["id"], max(row["ms"], 1e-3), 0, text))
        if len(bars) > 1:
            groups.append((step, bars))
            used += members
    if not groups:
        return None
    height = bars_height(groups)
    sheet = Sheet(rows, used, "First use", "Medians. Beside each figure: what it has beyond the driver alone.", height)
    draw_bars(sheet, groups, "milliseconds", height)
    return sheet


PICTURES = (
    ("pair-by-size", plot_size),
    ("pair-by-size-touched", plot_touched),
    ("pair-by-live", plot_live),
    ("pair-scaling", plot_scaling),
    ("pair-by-setting", plot_settings),
    ("pair-mix", plot_mix),
    ("programs", plot_programs),
    ("peak-memory", plot_peak),
    ("first-use", plot_first),
)

