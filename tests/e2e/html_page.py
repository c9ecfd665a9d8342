# SPDX-License-Identifier: MIT
"""Uses the HTML report as a reader would, in a headless chromium: html_page.py CHROMIUM FOLDER, which
holds small.html, large.html, running.html and killed.html, of html_report.py. Leaves pictures there."""
import os
import sys

from browser import Browser

HOSTILE_TITLE = "script>"


def check(is_true, text):
    if not is_true:
        raise AssertionError(text)


def rows(page, section, column):
    """What the drawn rows of the section's first table show in a column."""
    return page.run(f"[...document.querySelector('#{section} .table').querySelectorAll('.space > .row')]"
                    f".map((row) => row.children[{column}].textContent)")


def hears_nothing_bad(page):
    check(page.complaints() == [], f"the page complains: {page.complaints()}")
    fetched = [url for url in page.requests() if not url.startswith("file://") or not url.endswith(".html")]
    check(fetched == [], f"the page fetches {fetched}")


def names_stay_text(page):
    check(page.run("window.hit === undefined && document.images.length === 0"), "a name became an element")
    check(page.run("document.title").startswith(HOSTILE_TITLE), f"the title is {page.run('document.title')}")
    page.run("(() => { const f = document.querySelector('#site-filter'); f.value = 'onerror'; f.dispatchEvent(new Event('input')); })()")
    page.settle()
    check("</script><img src=x onerror=hit()>" in rows(page, "sites", 6), f"the call is not shown as it is: {rows(page, 'sites', 6)}")
    page.run("(() => { const f = document.querySelector('#site-filter'); f.value = ''; f.dispatchEvent(new Event('input')); })()")
    page.settle()


def overview_is_right(page):
    text = page.run("document.querySelector('#overview').textContent")
    for wanted in ("123\u00a0MiB", "5 blocks from 2 sites", "Out of memory41calls", "90\u00a0%", "node7", "exited with status 0", "<b>bold</b>", "Fast GPU 1", "11\u00a0GiB"):
        check(wanted in text, f"'{wanted}' is not in the overview: {text}")


def frameworks_fold(page):
    page.run("goToSite([...Array(sites.n).keys()].find((i) => stackOf(i).some((frame) => codeName(frame) === 'torch')))")
    page.settle()
    lines = page.run("[...document.querySelectorAll('#sites .stack')][0].innerText").split("\n")
    check(len(lines) == 5 and "3\u00a0frames of torch" in lines[2].replace(" frames", "\u00a0frames"), f"the stack is {lines}")
    page.run("document.querySelector('#sites .stack summary').click()")
    opened = page.run("[...document.querySelectorAll('#sites .stack')][0].innerText")
    check("torch/nn.py:8" in opened, f"the opened stack is {opened}")


def flame_zooms(page):
    """The top row is all, the second main, the third the outer frames, the widest at the left."""
    height = page.run("document.querySelector('#flame canvas').clientHeight")
    page.click("#flame canvas", 0.005, 50 / height)
    path = page.run("document.querySelector('#flame .crumbs').textContent")
    check("outer_" in path, f"a click on the third row zooms to '{path}'")
    check("of all" in page.run("document.querySelector('#flame .read').textContent"), "nothing is read out")
    page.run("[...document.querySelectorAll('#flame .crumbs button')].pop().click()")
    page.settle()
    name = path.split("outer_")[1].split("List")[0]
    count = page.run("document.querySelector('#sites .controls [role=status]').textContent")
    wanted = len([i for i in range(300) if i % 40 == int(name)])
    check(count.startswith(f"{wanted} of 300 sites"), f"below outer_{name} are {count}, not {wanted}")
    page.run("[...document.querySelectorAll('#sites .controls button')].find((one) => one.textContent.startsWith('below')).click()")
    page.run("document.querySelector('#flame canvas').focus()")
    page.key("Escape")
    page.key("Escape")
    check("Click a frame" in page.run("document.querySelector('#flame .crumbs').textContent"), "Escape does not zoom out")


def flame_moves_by_key(page):
    page.run("document.querySelector('#flame canvas').focus()")
    read = "document.querySelector('#flame .read').textContent"
    for key, wanted in (("ArrowDown", "main"), ("ArrowDown", "outer_"), ("ArrowRight", "outer_")):
        before = page.run(read)
        page.key(key)
        check(page.run(read).startswith(wanted) and page.run(read) != before, f"{key} leads to {page.run(read)}")
    page.key("Enter")
    check("outer_" in page.run("document.querySelector('#flame .crumbs').textContent"), "Enter does not zoom")
    page.key("Escape")
    page.key("Escape")


def colours_in(page, selector, name="match"):
    """How many pixels of the canvas have the colour, by default that of what was found."""
    return page.run(f"""(() => {{
      const canvas = document.querySelector('{selector}');
      const probe = document.createElement('canvas').getContext('2d');
      probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim();
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
      const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      let count = 0;
      for (let i = 0; i < all.length; i += 4) if (all[i] === r && all[i + 1] === g && all[i + 2] === b) count++;
      return count;
    }})()""")


def one_function_is_one_frame(page):
    """main calls from two places: one frame of the flame graph, two if addresses are asked for."""
    read = "document.querySelector('#flame .read').textContent"
    page.run("document.querySelector('#flame canvas').focus()")
    for wanted in (False, True):
        page.key("Home")
        page.key("ArrowDown")
        first = page.run(read)
        page.key("ArrowRight")
        check((page.run(read) != first) == wanted, f"main is beside main: {first}, {page.run(read)}")
        check(("main.cc:" in first.split(" \u2014 ")[0]) == wanted, f"the frame is called {first}")
        page.run("document.querySelector('#flame .controls input[type=checkbox]').click()")
        page.run("document.querySelector('#flame canvas').focus()")
    page.run("[...document.querySelectorAll('#flame .controls button')][0].focus()")
    legend = page.run("document.querySelector('#flame .legend').textContent")
    for kind in ("the program's own", "framework", "Python", "library"):
        check(kind in legend, f"'{kind}' is not in the legend: {legend}")


def sites_differ(page):
    """Forty outer functions name all sites of theirs: each row has what tells it from the others."""
    check(page.run("new Set(Array.from({ length: sites.n }, (_, i) => siteText(i))).size === sites.n"), "two sites look alike")
    shown = rows(page, "sites", 5)
    check(len(set(shown)) == len(shown), f"rows that look alike: {shown}")


def peak_is_a_view(page):
    """All that was live at a device's peak, and which device's it is."""
    text = "document.querySelector('#peak').textContent"
    for device in (0, 1):
        page.run(f"document.querySelector('#peak [data-name=\"{device}\"]')?.click()")
        page.settle()
        held = [(i + 1) * 4096 for i in range(300) if i % 7 == 0 and i % 2 == device]
        shown = [in_bytes(one) for one in rows(page, "peak", 0)]
        check(abs(shown[0] - max(held)) < 8192, f"most at the peak of {device}: {shown[0]}, expected {max(held)}")
        check(f"Device {device}: 9\u00a0GiB live at 1:20.0" in page.run(text), page.run(text)[:300])
    check(page.run("document.querySelector('#peak .flame canvas').clientHeight") > 60, "the peak has no flame graph")


def late_device_is_drawn(page):
    """Its one sample says when it was taken, and is seen."""
    check("one sample only: it was taken at 1:38.0, 2.000\u00a0s before the end" in page.run("document.querySelector('#timeline').textContent"),
          "nothing is said of one sample")
    check(colours_in(page, "#timeline .chart:nth-child(3) canvas", "live") > 100, "the device's chart is empty")


def search_highlights(page):
    check(colours_in(page, "#flame canvas") == 0, "something is highlighted before the search")
    page.run("document.activeElement.blur()")
    page.key("/", text="/")
    check(page.run("document.activeElement.matches('#flame input[type=search]')"), "/ does not go to the search")
    page.call("Input.insertText", text="outer_0")
    page.settle()
    live = [(i + 1) * 4096 for i in range(300) if i % 7 == 0]
    mine = sum((i + 1) * 4096 for i in range(300) if i % 7 == 0 and i % 40 == 0)
    share = 100 * mine / sum(live)
    text = page.run("document.querySelector('#flame .matched').textContent")
    check(text.startswith(f"{share:.1f}\u00a0% matched"), f"'{text}', expected {share:.1f} %")
    check(colours_in(page, "#flame canvas") > 50, "what was found is not highlighted")
    page.key("Escape")
    page.run("(() => { const f = document.querySelector('#flame input'); f.value = ''; f.dispatchEvent(new Event('input')); })()")
    page.settle()


def in_bytes(text):
    value, unit = text.split("\u00a0")
    return float(value) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)


def measures_differ(page):
    """The root says the sum of each measure."""
    read = "document.querySelector('#flame .read').textContent"
    for name, wanted in (("total", f"{sum((i + 1) * 8192 for i in range(300)) / 2**20:.1f}\u00a0MiB"), ("count", "45,150"), ("live", None)):
        page.run(f"document.querySelector('#flame [data-name={name}]').click()")
        page.run("document.querySelector('#flame canvas').focus()")
        page.key("Home")
        check(wanted is None or wanted in page.run(read), f"{name} is {page.run(read)}, expected {wanted}")


def table_sorts(page):
    def header(i):
        page.run(f"document.querySelectorAll('#sites .titles button')[{i}].click()")
        page.settle()

    shown = [in_bytes(text) for text in rows(page, "sites", 0)]
    check(len(shown) > 5 and shown == sorted(shown, reverse=True) and shown[0] > 1 << 20, f"not by live bytes: {shown}")
    header(2)
    shown = [in_bytes(text) for text in rows(page, "sites", 2)]
    check(shown[0] == 300 * 8192 or abs(shown[0] - 300 * 8192) < 8192, f"the largest total is {shown[0]}")
    header(2)
    shown = [in_bytes(text) for text in rows(page, "sites", 2)]
    check(shown == sorted(shown) and shown[0] == 8192, f"not upwards: {shown}")
    check(page.run("document.querySelectorAll('#sites .titles > *')[2].getAttribute('aria-sort')") == "ascending", "aria-sort")
    header(0)


def table_filters(page):
    count = "document.querySelector('#sites .controls [role=status]').textContent"
    page.run("(() => { const s = document.querySelector('#sites select'); s.value = 'growing'; s.dispatchEvent(new Event('change')); })()")
    page.settle()
    wanted = len([i for i in range(300) if i % 14 == 0])
    check(page.run(count).startswith(f"{wanted} of"), f"growing: {page.run(count)}")
    check(set(rows(page, "sites", 4)) == {"growing"}, "another class is shown")
    page.run("(() => { const s = document.querySelector('#sites select'); s.value = ''; s.dispatchEvent(new Event('change')); })()")
    page.run("(() => { const f = document.querySelector('#site-filter'); f.value = '/outer_1$/'; f.dispatchEvent(new Event('input')); })()")
    page.settle()
    check(page.run(count).startswith("8 of 300"), f"/outer_1$/: {page.run(count)}")
    check(all(text.startswith("outer_1outer.py:11 \u2192 ") for text in rows(page, "sites", 5)), f"a script's line names its sites: {rows(page, 'sites', 5)}")
    page.run("(() => { const f = document.querySelector('#site-filter'); f.value = ''; f.dispatchEvent(new Event('input')); })()")
    page.settle()


def table_opens_by_key(page):
    page.run("document.activeElement.blur()")
    page.key("g", text="g")
    check(page.run("document.activeElement.matches('#sites .rows')"), "g does not go to the table")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.key(key)
    detail = page.run("document.querySelector('#sites .detail')?.textContent || ''")
    check("main" in detail and "outer_" in detail and "allocations" in detail, f"the row does not open: {detail}")
    page.key("Escape")
    check(page.run("document.querySelector('#sites .detail') === null"), "Escape does not close the row")
    page.key("End")
    check(page.run("document.querySelector('#sites .row.active') !== null"), "End shows no active row")
    page.run("document.querySelector('#sites .rows').scrollTop = 0")
    page.settle()


def moment_fills(page):
    """Live bytes of a site grow evenly, so half-way it has half of them."""
    share = (76 + 0.5 * (page.run("document.querySelector('#timeline canvas').clientWidth") - 88)) / page.run("document.querySelector('#timeline canvas').clientWidth")
    page.click("#timeline canvas", share, 0.3)
    shown = [in_bytes(text) for text in rows(page, "moment", 0)]
    wanted = 295 * 4096 / 2
    check(len(shown) > 5 and abs(shown[0] - wanted) < wanted * 0.03, f"held at half time: {shown[:2]}, expected {wanted}")
    text = page.run("document.querySelector('#moment p').textContent")
    page.run("document.querySelector('#timeline canvas').focus()")
    for _ in range(8):
        page.key("ArrowLeft")
    check(page.run("document.querySelector('#moment p').textContent") != text, "arrow keys do not move the moment")
    check("live" in page.run("document.querySelector('#timeline .read').textContent"), "the timeline reads out nothing")
    check("live" in page.run("document.querySelector('#timeline canvas').getAttribute('aria-valuetext')"), "nothing for screen readers")
    check(page.run("document.querySelector('#moment .flame canvas').clientHeight") > 60, "the moment has no flame graph")


def other_views_are_filled(page):
    growth = page.run("document.querySelector('#growth').textContent")
    check("Sites that keep growing" in growth and "rising" in growth and "\u00d71.50" in growth, f"growth: {growth[:200]}")
    check(page.run("document.querySelectorAll('#growth canvas').length") > 3, "no sparklines")
    check(len(rows(page, "pool", 0)) > 5 and "90\u00a0%" in page.run("document.querySelector('#pool').textContent"), "the pool is not shown")
    check("3,000 events" in page.run("document.querySelector('#events').textContent"), "not all events")
    page.run("(() => { const s = document.querySelector('#events select'); s.value = 'oom'; s.dispatchEvent(new Event('change')); })()")
    page.settle()
    check("300 events" in page.run("document.querySelector('#events .controls').textContent"), "oom are not 300")
    page.run("document.querySelector('#events .space > .row').click()")
    page.settle()
    check(set(rows(page, "events", 1)) == {"oom"}, "another event is shown")
    page.run("document.querySelector('#growth .space button').click()")
    page.settle()
    check(page.run("document.querySelector('#sites .detail') !== null"), "a link to a site does not open it")


def whole_is_told(page):
    """Pressure, old blocks, the account of an out of memory, the audit."""
    for section, texts in (("pool", ("Pressure", "7\u00a0MiB", "88\u00a0%", "41", "low 75\u00a0%, critical 25\u00a0%", "wait for the device", "13\u00a0MiB")),
                           ("audit", ("CUPTI (version 24) and cuwarden differ in 9 places.", "1,234 (77\u00a0MiB)", "2 (6\u00a0MiB)", "the first 2 of 9", "not seen by cuwarden",
                                      "0x7f00", "sizes differ", "18\u00a0MiB", "CUPTI dropped 4 records", "51\u00a0MiB in 3 variables", "2 of them are not shown", "__managed__")),
                           ("growth", ("live for 1:00.0 and more", "99\u00a0MiB", "1:01.0")),
                           ("events", ("2.000\u00a0s, device 1: 511\u00a0MiB refused", "beyond the memory limit", "largest that fits: 21\u00a0MiB", "not in one piece",
                                       "idle in the pool", "9 blocks of cudaMalloc", "3 blocks at all other sites"))):
        text = page.run(f"document.querySelector('#{section}').textContent")
        for wanted in texts:
            check(wanted in text, f"'{wanted}' is not in {section}: {text[:3000]}")
    page.run("document.querySelector('#events .account button').click()")
    page.settle()
    check(page.run("document.querySelector('#sites .detail') !== null"), "an account does not lead to its site")
    check(page.run("window.hit === undefined"), "a name became an element")


def is_read_where_nobody_looks(page, folder):
    """A page that is not seen gets no frames and is made all the same; printing waits for nothing."""
    path = os.path.join(folder, "small.html")
    reading = "document.body.textContent.includes('Reading')"
    page.open_as(path, "window.requestAnimationFrame = () => 0;")
    page.wait("document.documentElement.dataset.ready === 'true'")
    check(not page.run(reading), "the page waits for a frame that never comes")
    page.open_as(path, "window.requestAnimationFrame = window.setTimeout = () => 0;")
    check(page.run(reading), "the page is made before there was time")
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    check(not page.run(reading), "half a page on paper")
    page.open(path)


def help_and_theme(page):
    page.run("document.activeElement.blur()")
    page.key("?", text="?")
    check(page.run("document.querySelector('#keys').open"), "? does not show the keys")
    page.key("Escape")
    check(page.run("document.documentElement.dataset.theme") == "light", "the system's theme is not taken")
    page.scheme("dark")
    check(page.run("document.documentElement.dataset.theme") == "dark", "the theme does not follow the system's")
    page.run("document.querySelector('#theme').click()")
    check(page.run("document.documentElement.dataset.theme") == "light", "the theme cannot be switched")
    page.run("document.querySelector('#theme').click()")


def prints(page):
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    check(page.run("document.documentElement.dataset.theme") == "light", "paper is not white")
    check(len(rows(page, "sites", 0)) == 80, f"{len(rows(page, 'sites', 0))} rows on paper")
    check("The first 80 of 300." in page.run("document.querySelector('#sites').textContent"), "nothing says that rows are missing")
    page.run("window.dispatchEvent(new Event('afterprint'))")
    page.call("Emulation.setEmulatedMedia", media="print")
    lost = page.run("""[...document.querySelectorAll('.legend i, .badge, .meter i')]
      .filter((mark) => getComputedStyle(mark).printColorAdjust !== 'exact').length""")
    check(lost == 0, f"{lost} colours are lost on paper")
    page.call("Emulation.setEmulatedMedia", media="")


def fits_narrow_windows(page):
    page.size(400, 800)
    check(page.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window")
    outside = page.run("""[...document.querySelectorAll('.space > .row > *')].filter((cell) => {
      const row = cell.parentElement.getBoundingClientRect();
      const box = cell.getBoundingClientRect();
      return box.width > 0 && cell.textContent && (box.right > row.right + 1 || box.top < row.top - 1 || box.bottom > row.bottom + 1);
    }).length""")
    check(outside == 0, f"{outside} cells are not in their rows, in a narrow window")
    cut = page.run("""[...document.querySelectorAll('.space > .row > *, .row .site > *, .plain td, .tile *, .legend span, .bar a')].filter((one) =>
      one.textContent.length < 60 && getComputedStyle(one).display !== 'none' && (one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > innerWidth)
      && one.clientWidth > 0).map((one) => one.textContent)""")
    check(cut == [], f"cut in a narrow window: {cut}")


def picture(page, folder, name):
    """Only for those who look: a picture of a long page takes a second."""
    if os.environ.get("KEEP"):
        page.picture(os.path.join(folder, f"{name}.png"))


def sites_are_read_whole(page):
    """What tells a site apart is not cut, whatever the width."""
    for width in (1400, 800, 400):
        page.size(width, 900)
        page.settle()
        cut = page.run("""[...document.querySelectorAll('.row .site > *')].filter((one) => one.clientWidth > 0 && one.textContent.length < 80
          && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 2)).map((one) => one.textContent)""")
        check(cut == [], f"cut at {width}: {cut}")


def use_small(page, folder):
    page.size(1280, 900)
    page.scheme("light")
    page.open(os.path.join(folder, "small.html"))
    steps = [hears_nothing_bad, overview_is_right, names_stay_text, one_function_is_one_frame, sites_differ, peak_is_a_view, late_device_is_drawn, table_sorts, table_filters, table_opens_by_key, search_highlights,
             flame_moves_by_key, flame_zooms, frameworks_fold, measures_differ, moment_fills, other_views_are_filled, whole_is_told]
    for step in steps:
        step(page)
    picture(page, folder, "light")
    for step in (help_and_theme, hears_nothing_bad):
        step(page)
    picture(page, folder, "dark")
    prints(page)
    sites_are_read_whole(page)
    fits_narrow_windows(page)
    picture(page, folder, "narrow")
    hears_nothing_bad(page)
    is_read_where_nobody_looks(page, folder)


def use_unended(page, folder):
    """What a process has that runs, or that was ended, is not shown as leaked."""
    for end in ("running", "killed"):
        page.open(os.path.join(folder, f"{end}.html"))
        tile = page.run("document.querySelector('.tile').textContent")
        check(tile == "Still allocated123\u00a0MiB5 blocks from 2 sites", f"of a process that is {end}: {tile}")
        check(page.run("!document.querySelector('.tile').classList.contains('bad')"), "what is still allocated is red")
        classes = page.run("[...document.querySelectorAll('#sites .controls option')].map((one) => one.value)")
        check("live" in classes and not {"leaks", "lost"} & set(classes), f"classes of sites: {classes}")
        check(page.run("document.querySelector('#audit').clientHeight") > 0, "the audit is not there")
        hears_nothing_bad(page)


def use_large(page, folder):
    """Many sites, ten times as many events: few elements, the end can be reached, keys work."""
    page.size(1280, 900)
    page.open(os.path.join(folder, "large.html"))
    check(page.run("document.querySelectorAll('*').length") < 5000, "the page has an element for each site")
    events = page.run("main.events")
    check(events >= 150000, f"{events} events are not many")
    check(f"{events:,} events" in page.run("document.querySelector('#events').textContent"), "not all events")
    page.run("document.querySelector('#events .rows').focus()")
    page.key("End")
    times = rows(page, "events", 0)
    check(times[-1] == "1:39.9" or times[-1] == "1:40.0", f"the last event is at {times[-1]}")
    for _ in range(3):
        page.key("PageUp")
    check(page.run("""(() => {
      const row = document.querySelector('#events .row.active')?.getBoundingClientRect();
      const view = document.querySelector('#events .rows').getBoundingClientRect();
      return row && row.top >= view.top - 1 && row.bottom <= view.bottom + 1;
    })()"""), "the active row is not in view")
    check(page.run("new Set(Array.from({ length: sites.n }, (_, i) => siteText(i))).size === sites.n"), "two of many sites look alike")
    page.run("document.querySelectorAll('#sites .titles button')[5].click()")
    page.settle()
    check(len(rows(page, "sites", 5)) > 5, "no rows after sorting by name")
    page.key("/", text="/")
    page.call("Input.insertText", text="caller_1234")
    page.settle()
    check("matched" in page.run("document.querySelector('#flame .matched').textContent"), "the search finds nothing")
    hears_nothing_bad(page)
    picture(page, folder, "large")


def use_empty(page, folder):
    """A program that did nothing: sections say so, and nothing is thrown."""
    page.size(1280, 900)
    page.open(os.path.join(folder, "empty.html"))
    text = page.run("document.body.textContent")
    for wanted in ("nothing was left", "used no device", "No sample", "Nothing out of the ordinary", "0 of 0 sites"):
        check(wanted in text, f"'{wanted}' is not on the empty page")
    check(page.run("[...document.querySelectorAll('#audit, a[href=\"#audit\"]')].every((one) => one.getClientRects().length === 0)"), "an audit that nobody asked for")
    hears_nothing_bad(page)


def run(program, folder):
    page = Browser(program)
    try:
        use_small(page, folder)
        use_empty(page, folder)
        use_unended(page, folder)
        if os.path.exists(os.path.join(folder, "large.html")):
            use_large(page, folder)
    finally:
        page.close()


if __name__ == "__main__":
    run(sys.argv[1], os.path.abspath(sys.argv[2]))
