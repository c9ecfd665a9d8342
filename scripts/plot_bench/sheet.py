# SPDX-License-Identifier: MIT
"""A sheet with its texts; lines and bars on it."""
import math
import os
import sys

from plot_bench.rows import LOOKS, die
from plot_bench.words import method_text, time_text, where_text

WIDTH = 9.2  # inches; the width that web pages show without scaling
MARGIN = 0.25
SIZE, SMALL = 9.5, 8.5
INK, PALE = "#1a1a1a", "#555555"
PNG_DPI = 160


def set_up_matplotlib():
    try:
        import matplotlib
        import matplotlib.figure
        import matplotlib.textpath
    except ImportError as error:
        die("no matplotlib for %s (%s); get it: apt-get install python3-matplotlib, or python3 -m pip install matplotlib"
            % (sys.executable, error), 2)
    matplotlib.rcdefaults()  # not the reader's own matplotlibrc
    matplotlib.rcParams.update({
        "svg.hashsalt": "cuwarden", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": SIZE,
        "text.parse_math": False, "axes.edgecolor": "#888888", "axes.linewidth": 0.8, "text.color": INK,
        "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "path.simplify": False,
    })
    return matplotlib


def inches_of(text, size=SIZE, weight="normal"):
    """The rendered width of a text, as the font has it: extents of its outlines take a second for each line."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", weight=weight, size=size)
    return text_to_path.get_text_width_height_descent(text, font, False)[0] / 72


def wrap(text, width, size):
    lines = [""]
    for word in text.split():
        longer = (lines[-1] + " " + word).strip()
        if inches_of(longer, size) > width and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


class Sheet:
    """A plot: a title, where it was measured, one or more axes, and the method below."""

    def __init__(self, rows, used, title, caption, height):
        from matplotlib.figure import Figure

        self.title = title
        foot = wrap(caption + " " + method_text(rows), WIDTH - 2 * MARGIN, SMALL)
        head = wrap(where_text(rows), WIDTH - 2 * MARGIN, SMALL)
        self.bottom = 0.2 + 0.165 * len(foot)
        self.height = self.bottom + height + 0.5 + 0.165 * len(head)
        self.figure = Figure(figsize=(WIDTH, self.height), facecolor="white")
        self.text(MARGIN, self.height - 0.17, title, 12.5, INK, weight="bold", va="top")
        self.text(MARGIN, self.height - 0.45, "\n".join(head), SMALL, PALE, va="top")
        self.text(MARGIN, self.bottom - 0.1, "\n".join(foot), SMALL, PALE, va="top")
        self.simulated = any(row["simulated"] for row in used) or rows.machine.get("simulated") is True

    def text(self, x, y, text, size, color, **more):
        self.figure.text(x / WIDTH, y / self.height, text, size=size, color=color, linespacing=1.35, **more)

    def axes(self, left, bottom, width, height):
        bottom += self.bottom
        axes = self.figure.add_axes([left / WIDTH, bottom / self.height, width / WIDTH, height / self.height])
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(length=3, color="#888888")
        axes.set_axisbelow(True)
        return axes

    def save(self, directory, name, with_png):
        if self.simulated:
            self.figure.text(0.5, 0.5, "simulated, not measured", size=44, color="#c00000", alpha=0.28, rotation=20,
                             ha="center", va="center", weight="bold", zorder=100)
        self.figure.add_artist(_frame())
        paths = [os.path.join(directory, name + ending) for ending in ([".svg", ".png"] if with_png else [".svg"])]
        for path in paths:
            new = path + ".new"
            try:
                metadata = {"Date": None, "Creator": "cuwarden plot-bench", "Title": self.title}
                if path.endswith(".svg"):
                    self.figure.savefig(new, format="svg", metadata=metadata)
                else:
                    self.figure.savefig(new, format="png", dpi=PNG_DPI, metadata={"Software": None})
                os.replace(new, path)
            except OSError as error:
                die("cannot write %s: %s" % (path, error.strerror))
            print(path)


def _frame():
    from matplotlib.patches import Rectangle

    return Rectangle((0, 0), 1, 1, fill=False, edgecolor="#cccccc", linewidth=1.5)


def decades(axis, low, high, text_of):
    """Ticks of a logarithmic axis with units; below two decades also at 2 and 5."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    parts = (1,) if math.log10(high / low) > 2.2 else (1, 2, 5)
    all_ticks = [part * 10.0 ** power for power in range(-4, 13) for part in range(1, 10)]
    major = [part * 10.0 ** power for power in range(-4, 13) for part in parts]
    axis.set_major_locator(FixedLocator([tick for tick in major if low <= tick <= high]))
    axis.set_minor_locator(FixedLocator([tick for tick in all_ticks if low <= tick <= high]))
    axis.set_major_formatter(lambda value, _: text_of(value))
    axis.set_minor_formatter(NullFormatter())


def spread_apart(places, gap, low, high):
    """The positions, in ascending order, moved minimally to be a gap apart within the limits."""
    groups = []
    for place in places:
        groups.append([place, 1])
        while True:  # a group is centred on its members' preferred positions
            middle, count = groups[-1]
            half = gap * (count - 1) / 2
            middle = min(max(middle, low + half), high - half)
            groups[-1][0] = middle
            if len(groups) < 2 or middle - half - (groups[-2][0] + gap * (groups[-2][1] - 1) / 2) >= gap - 1e-9:
                break
            groups.pop()
            other, others = groups[-1]
            groups[-1] = [(other * others + middle * count) / (others + count), others + count]
    return [middle + gap * (at - (count - 1) / 2) for middle, count in groups for at in range(count)]


def label_ends(axes, ends):
    """A name at the end of each line, in its colour, with a thin leader if it had to move."""
    inches = axes.get_position().height * axes.figure.get_figheight()
    y_of = lambda value: axes.transAxes.inverted().transform(axes.transData.transform((1, value)))[1]
    ends = sorted(ends, key=lambda end: (y_of(end[2]), end[0]))
    wanted = [y_of(y) for _, _, y in ends]
    for (name, x, y), place in zip(ends, spread_apart(wanted, 0.185 / inches, 0.02, 0.98)):
        look = LOOKS[name]
        axes.annotate(look.label, xy=(x, y), xycoords="data", xytext=(1.035, place), textcoords="axes fraction", size=SIZE,
                      color=look.color, va="center", weight="bold" if look.is_ours else "normal", annotation_clip=False,
                      arrowprops={"arrowstyle": "-", "color": look.color, "linewidth": 0.7, "alpha": 0.6,
                                  "shrinkA": 1.5, "shrinkB": 3})


def draw_lines(axes, series):
    """series: (contestant, [(x, y, spread)]), with y logarithmic."""
    axes.set_yscale("log")
    for name, points in series:
        look = LOOKS[name]
        x, y = [point[0] for point in points], [point[1] for point in points]
        axes.plot(x, y, look.dashes, color=look.color, marker=look.marker, linewidth=2.6 if look.is_ours else 1.5,
                  markersize=6.5 if look.is_ours else 5.5, markeredgecolor="white", markeredgewidth=0.6,
                  zorder=4 if look.is_ours else 3, clip_on=False)
        if any(point[2] for point in points):
            half = [point[1] * min(point[2] / 2, 0.9) for point in points]
            axes.errorbar(x, y, yerr=half, fmt="none", ecolor=look.color, elinewidth=1, alpha=0.7, zorder=2)
    axes.grid(True, axis="y", color="#e2e2e2", linewidth=0.8)


def fit_y(all_axes, values, text_of=time_text):
    low, high = min(values) / 1.5, max(values) * 1.5
    for axes in all_axes:
        axes.set_ylim(low, high)
        decades(axes.yaxis, low, high, text_of)


def fit_x(axes, places, texts, width):
    """All ticks; labels only where they fit."""
    low, high = min(places), max(places)
    room = (high - low) * 0.025 or 0.5
    axes.set_xlim(low - room, high + room)
    shown, taken = [], -1e9
    for place, text in zip(places, texts):
        middle = (place - low + room) / (high - low + 2 * room) * width
        half = inches_of(text) / 2
        fits = middle - half > taken + 0.12
        shown.append(text if fits else "")
        taken = middle + half if fits else taken
    axes.set_xticks(places)
    axes.set_xticklabels(shown)


def label_room(names):
    return max(inches_of(LOOKS[name].label, SIZE, "bold" if LOOKS[name].is_ours else "normal") for name in names) + 0.4


def draw_bars(sheet, groups, unit_text, top, reference=None):
    """groups: (title, [(label, contestant, value, spread, text)]), stacked. Above a ratio of 12
    the axis is logarithmic, with points instead of bars, whose lengths would be meaningless."""
    values = [bar[2] for _, bars in groups for bar in bars]
    is_log = max(values) > 12 * min(values)
    left = MARGIN + max(inches_of(bar[0], SIZE, "bold") for _, bars in groups for bar in bars) + 0.15
    right = max(inches_of(bar[4]) for _, bars in groups for bar in bars) + 0.2
    axes = sheet.axes(left, 0.55, WIDTH - MARGIN - left, top - 0.55)
    rows, place = [], 0.0
    for title, bars in groups:
        if title:
            rows.append((place, title))
            place += 1
        for bar in bars:
            rows.append((place, bar))
            place += 1
        place += 0.45
    share = right / (WIDTH - MARGIN - left)  # share of the axis used by the texts beside the bars
    if is_log:
        low, high = min(values) / 1.5, max(values) * (max(values) / min(values)) ** (share / (1 - share)) * 1.2
        axes.set_xscale("log")
        decades(axes.xaxis, low, high, lambda value: "%g" % value)
        axes.set_xlim(low, high)
    else:
        axes.set_xlim(0, max(bar[2] * (1 + bar[3] / 2) for _, bars in groups for bar in bars) / (1 - share))
    for place, bar in rows:
        if isinstance(bar, str):
            axes.text(-(left - MARGIN) / (WIDTH - MARGIN - left), place, bar, transform=axes.get_yaxis_transform(), va="center",
                      weight="bold", size=SIZE)
        else:
            draw_bar(axes, place, bar, is_log, left / (WIDTH - MARGIN - left))
    if reference is not None:
        axes.axvline(reference, color=LOOKS["native"].color, linewidth=1, dashes=(3, 3), zorder=5)
    axes.set_ylim(max(place for place, _ in rows) + 0.7, -0.7)
    axes.set_yticks([])
    axes.set_xlabel(unit_text)
    axes.grid(True, axis="x", color="#e2e2e2", linewidth=0.8)


def draw_bar(axes, place, bar, is_log, left):
    label, name, value, spread, text = bar
    look = LOOKS[name]
    if is_log:
        axes.plot([axes.get_xlim()[0], value], [place, place], "-", color="#cfcfcf", linewidth=1, zorder=2)
        axes.plot([value], [place], look.marker, color=look.color, markersize=8, markeredgecolor="white", zorder=4)
    else:
        axes.barh([place], [value], height=0.72, color=look.color, zorder=3)
    if spread:
        axes.errorbar([value], [place], xerr=[value * min(spread / 2, 0.9)], fmt="none", ecolor=INK, elinewidth=1, capsize=2,
                      zorder=5)
    end = value * (1 + spread / 2)
    axes.annotate(text, xy=(end, place), xytext=(7, 0), textcoords="offset points", va="center", size=SIZE,
                  weight="bold" if look.is_ours else "normal")
    axes.annotate(label, xy=(0, place), xycoords=axes.get_yaxis_transform(), xytext=(-6, 0), textcoords="offset points",
                  ha="right", va="center", size=SIZE, color=look.color, weight="bold" if look.is_ours else "normal")


def bars_height(groups):
    lines = sum(len(bars) + (1 if title else 0) for title, bars in groups) + 0.45 * (len(groups) - 1)
    return 0.23 * (lines + 0.6) + 0.6
