/* SPDX-License-Identifier: MIT */
/* The table of call sites, what is shown of one, and the same sites at one moment. */

let siteTable = null;

const siteFilter = { words: "", leak: "", device: "", below: null };

function siteColumns() {
  return [
    { title: "Live", number: true, width: "6.2rem", tip: "Bytes that were never freed", value: metrics[0].of, text: (i) => formatBytes(metrics[0].of(i)) },
    { title: "At peak", minor: true, number: true, width: "6.2rem", tip: "Bytes held when the device was fullest", value: metrics[1].of, text: (i) => formatBytes(metrics[1].of(i)) },
    { title: "Total", minor: true, number: true, width: "6.2rem", tip: "Bytes of all allocations", value: metrics[2].of, text: (i) => formatBytes(metrics[2].of(i)) },
    { title: "Count", minor: true, number: true, width: "5.6rem", tip: "Number of allocations", value: metrics[3].of, text: (i) => formatCount(metrics[3].of(i)) },
    { title: "Class", width: "8rem", tip: "What kind of leak it is", value: (i) => strings[sites.leak[i]], cell: (i) => badge(strings[sites.leak[i]]) },
    { title: "Site", wide: true, width: "minmax(12rem, 1fr)", tip: "The frame that allocated, and those that tell it from sites with the same one", value: siteText, cell: (i) => siteLabel(i) },
    { title: "Call", minor: true, width: "minmax(8rem, .35fr)", class: "soft", tip: "What was called", value: (i) => strings[sites.api[i]], text: (i) => strings[sites.api[i]] },
    { title: "Dev", minor: true, width: "3.6rem", tip: "Device", value: (i) => sites.device[i], text: (i) => deviceName(sites.device[i]) },
    { title: "Tag", minor: true, width: "6rem", class: "soft", tip: "Innermost range or mark of NVTX", value: (i) => strings[sites.tag[i]], text: (i) => strings[sites.tag[i]] },
  ];
}

/* ---- filters ---- */

function siteTest() {
  const { words, leak, device, below } = siteFilter;
  const test = words ? matcherOf(words) : null;
  const found = words ? matchFrames(byAddress, words) : null;
  const hasFrame = words ? spread(byAddress, (i) => found[nodes.frame[i]]) : null;
  const isBelow = below ? spread(below.tree, (i) => i === below.node) : null;
  const ofSite = test ? strings.map(test) : null;
  return (i) =>
    (!isBelow || isBelow[below.tree.leaf[i]]) &&
    (leak === "" || (leak === "leaks" ? sites.isLeak[i] === 1 : strings[sites.leak[i]] === leak)) &&
    (device === "" || sites.device[i] === Number(device)) &&
    (!words || hasFrame[leaves[i]] || ofSite[sites.kind[i]] || ofSite[sites.tag[i]] || test(siteId(i)));
}

function filterSites() {
  const { words, leak, device, below } = siteFilter;
  siteTable.setFilter(words || leak || device || below ? siteTest() : null);
}

function valuesPresent(column) {
  return [...new Set(column)];
}

function choice(label, options, onchange) {
  const select = el("select", { onchange: () => onchange(select.value) },
    ...options.map(([value, text]) => el("option", { value }, text)));
  return el("label", {}, label, select);
}

function siteControls(count) {
  const words = el("input", {
    type: "search", placeholder: "Filter: frame, file, module, tag, id, /regex/", "aria-label": "Filter sites", id: "site-filter",
    oninput: () => {
      siteFilter.words = words.value;
      filterSites();
    },
  });
  const classes = valuesPresent(sites.leak).map((i) => strings[i]).filter((name) => name).sort();
  const devices = valuesPresent(sites.device).sort((a, b) => a - b);
  const below = el("button", { type: "button", hidden: true, onclick: () => setBelow(below, null) });
  listen("below", (at) => setBelow(below, at));
  return el("div", { class: "controls" }, words,
    choice("Class", [["", "all"], ...(main.left.isLeaked ? [["leaks", "leaks"]] : []), ...classes.map((name) => [name, name])], (value) => {
      siteFilter.leak = value;
      filterSites();
    }),
    devices.length > 1 ? choice("Device", [["", "all"], ...devices.map((one) => [String(one), deviceName(one)])], (value) => {
      siteFilter.device = value;
      filterSites();
    }) : null,
    below, el("span", { class: "grow" }), count);
}

function setBelow(button, at) {
  siteFilter.below = at;
  button.hidden = !at;
  if (at) {
    button.textContent = `below ${frameName(at.tree.frame[at.node]).slice(0, 60)} \u2715`;
    document.getElementById("sites").scrollIntoView();
  }
  filterSites();
}

/* ---- one site ---- */

function pair(name, value) {
  return value === "" || value === null ? [] : [el("dt", {}, name), el("dd", {}, value)];
}

function frameItem(frame) {
  return el("li", {}, el("span", { class: "mono" }, frameName(frame)), " ",
    isPython(frame) ? el("span", { class: "badge python" }, "Python") : "", isInlined(frame) ? el("span", { class: "badge inlined" }, "inlined") : "",
    el("span", { class: "where" }, framePlace(frame)));
}

/* Of whom the first three are. */
function foldItem(run) {
  const names = [...new Set(run.map(codeName))];
  return el("li", {}, el("details", {},
    el("summary", { class: "soft" }, `${plural(run.length, "frame", "frames")} of ${names.slice(0, 3).join(", ")}${names.length > 3 ? ", \u2026" : ""}`),
    el("ol", { class: "stack" }, ...run.map(frameItem))));
}

function stackItem(item) {
  return Array.isArray(item) ? foldItem(item) : frameItem(item);
}

function sitePairs(i) {
  return el("dl", { class: "pairs" }, ...[
    pair("site", siteId(i)), pair("kind", strings[sites.kind[i]]), pair("device", deviceName(sites.device[i])),
    pair("tag", strings[sites.tag[i]]), pair("live", `${formatBytes(sites.liveBytes[i])} in ${formatCount(sites.liveCount[i])}`),
    pair("held for them", formatBytes(sites.held[i])),
    pair("gone with a context", sites.goneBytes[i] ? `${formatBytes(sites.goneBytes[i])} in ${formatCount(sites.goneCount[i])}` : ""),
    pair("most at once", formatBytes(sites.peakBytes[i])), pair("allocations", formatCount(sites.totalCount[i])),
    pair("frees", formatCount(sites.frees[i])), pair("failed", sites.failed[i] ? formatCount(sites.failed[i]) : ""),
    pair("out of memory", sites.oom[i] ? formatCount(sites.oom[i]) : ""),
    pair("first", formatTime(sites.first[i])), pair("last", formatTime(sites.last[i])),
    pair("growth", sites.samples[i] ? `${formatBytes(sites.slope[i])}/s, r\u00b2 ${sites.r2[i].toFixed(2)}` : ""),
  ].flat());
}

function blockRows(i) {
  const rows = [];
  for (let k = 0; k < blocks.n && rows.length < 20; k++) {
    if (blocks.site[k] !== i) continue;
    rows.push(el("tr", {}, el("td", { class: "mono" }, `0x${blocks.address[k].toString(16)}`),
      el("td", { class: "num" }, formatBytes(blocks.bytes[k])), el("td", { class: "num" }, formatTime(blocks.born[k])),
      el("td", { class: "num" }, String(blocks.tid[k]))));
  }
  return rows;
}

function siteDetail(i) {
  const stack = stackOf(i);
  const list = stack.length > 0 ? el("ol", { class: "stack" }, el("li", { class: "soft mono" }, strings[sites.api[i]]), ...foldStack(stack).map(stackItem))
    : el("p", { class: "quiet" }, "No call stack is known.");
  const left = el("div", {}, list);
  const rows = blockRows(i);
  if (rows.length > 0) left.append(el("h3", {}, rows.length === 20 ? "Blocks that are left (20 of them)" : "Blocks that are left"), plainTable(["Address", "Size>", "Born>", "Thread>"], rows));
  const right = el("div", {}, sitePairs(i));
  if (seriesOf.has(i)) right.append(spark(seriesOf.get(i), 48, "live bytes over time"));
  return el("div", { class: "split" }, left, right);
}

/* From elsewhere on the page: clears what hides it. */
function goToSite(i) {
  if (siteTable.placeOf(i) < 0) {
    Object.assign(siteFilter, { words: "", leak: "", device: "", below: null });
    for (const input of document.querySelectorAll("#sites .controls input, #sites .controls select")) input.value = "";
    filterSites();
  }
  document.getElementById("sites").scrollIntoView();
  siteTable.show(i, true);
  siteTable.rows.focus({ preventScroll: true });
}

/* The frame that names it, its line or module, and the frames that tell it from others. */
function siteLabel(i) {
  return el("span", { class: "site", title: siteText(i) }, el("span", { class: "mono" }, siteName(i)),
    el("span", { class: "soft" }, siteRest(i)));
}

/* Whether what tells some site apart needs more than one line. */
function needsLines() {
  return sites.contrast.some((text) => strings[text].length > 50);
}

/* Where Enter on the row goes to the site as well, the link is no stop of the tab key. */
function siteLink(i, isOnlyWay) {
  return i < 0 ? "" : el("button", { type: "button", class: "link", tabindex: isOnlyWay ? 0 : -1, onclick: (event) => {
    event.stopPropagation();
    goToSite(i);
  } }, siteLabel(i));
}

function showSites() {
  const body = bodyOf("sites");
  const count = el("span", { class: "soft", role: "status" });
  body.append(siteControls(count));
  const measure = Math.max(0, metrics.findIndex((metric) => metric.name === main.metric));
  siteTable = new Table(body, {
    name: "site", isTall: needsLines(), label: "Call sites", n: sites.n, columns: siteColumns(), sort: measure, detail: siteDetail, least: "66rem",
    none: "No site passes the filter.",
    onarrange: (order) => {
      const sum = order.reduce((all, i) => all + metrics[0].of(i), 0);
      count.textContent = `${formatCount(order.length)} of ${plural(sites.n, "site", "sites")}, ${formatBytes(sum)} live`;
    },
  });
}

/* ---- all that was live at the moment of a device's peak ---- */

function peakColumns(view) {
  const row = (k) => view.rows[k];
  return [
    { title: "Held", number: true, width: "7rem", value: (k) => sites.atPeakBytes[row(k)], text: (k) => formatBytes(sites.atPeakBytes[row(k)]) },
    { title: "Share", number: true, width: "5rem", value: (k) => sites.atPeakBytes[row(k)], text: (k) => formatShare(sites.atPeakBytes[row(k)], view.device.peakBytes) },
    { title: "Blocks", number: true, width: "5.6rem", value: (k) => sites.atPeakCount[row(k)], text: (k) => formatCount(sites.atPeakCount[row(k)]) },
    { title: "Left", minor: true, number: true, width: "7rem", tip: "Bytes that were never freed", value: (k) => metrics[0].of(row(k)), text: (k) => formatBytes(metrics[0].of(row(k))) },
    { title: "Site", wide: true, width: "minmax(12rem, 1fr)", value: (k) => siteText(row(k)), cell: (k) => siteLink(row(k)) },
    { title: "Call", minor: true, width: "minmax(8rem, .35fr)", class: "soft", value: (k) => strings[sites.api[row(k)]], text: (k) => strings[sites.api[row(k)]] },
    { title: "Tag", minor: true, width: "6rem", class: "soft", value: (k) => strings[sites.tag[row(k)]], text: (k) => strings[sites.tag[row(k)]] },
  ];
}

function fillPeak(view, device) {
  const values = new Float64Array(sites.n);
  let sum = 0;
  view.device = device;
  for (const i of view.rows) if (sites.home[i] === device.ordinal) sum += values[i] = sites.atPeakBytes[i];
  const rest = device.peakBytes - sum;
  view.text.textContent = `${device.isHost ? "Host" : `Device ${device.ordinal}`}: ${formatBytes(device.peakBytes)} live at ${formatTime(device.peakT)}, the most at once`
    + (rest > 0 ? `; ${formatBytes(rest)} of it at sites that are not shown.` : ".");
  view.table.setFilter((k) => values[view.rows[k]] > 0);
  view.flame.setValues(values, formatBytes);
}

function showPeak() {
  const body = bodyOf("peak");
  const devices = main.devices.filter((device) => device.peakBytes > 0);
  if (devices.length === 0) {
    body.append(el("p", { class: "quiet" }, "Nothing was ever live."));
    return;
  }
  const view = { rows: [...sites.atPeakBytes.keys()].filter((i) => sites.atPeakBytes[i] > 0), device: devices[0], text: el("p", { class: "soft", "aria-live": "polite" }) };
  const choices = devices.map((device) => ({ name: String(device.ordinal), title: device.isHost ? "Host" : `Device ${device.ordinal}`, device }));
  if (devices.length > 1) body.append(el("div", { class: "controls" }, segments("Device", choices, choices[0].name, (one) => fillPeak(view, one.device))));
  body.append(view.text);
  view.table = new Table(body, {
    name: "peak", isTall: needsLines(), label: "Live at the peak", n: view.rows.length, columns: peakColumns(view), sort: 0, most: 400, least: "56rem",
    none: "No site of it is shown.", onpick: (k) => goToSite(view.rows[k]),
  });
  body.append(el("p", {}));
  view.flame = new Flame(body, { label: "Flame graph of the peak" });
  fillPeak(view, devices[0]);
}

/* ---- at one moment ---- */

function nearestMoment(t) {
  let best = 0;
  main.moments.forEach((moment, i) => {
    if (Math.abs(moment - t) < Math.abs(main.moments[best] - t)) best = i;
  });
  return best;
}

/* When the sites with a series held most; -1: never anything. */
function fullestMoment() {
  const sums = new Float64Array(main.moments.length);
  for (const series of seriesOf.values()) series.forEach((bytes, i) => { sums[i] += bytes; });
  const fullest = sums.reduce((best, sum, i) => (sum > sums[best] ? i : best), 0);
  return sums[fullest] > 0 ? fullest : -1;
}

function momentColumns(view) {
  const last = main.moments.length - 1;
  const now = (i) => seriesOf.get(view.rows[i])[view.at];
  const later = (i) => seriesOf.get(view.rows[i])[last] - now(i);
  return [
    { title: "Held then", number: true, width: "7rem", value: now, text: (i) => formatBytes(now(i)) },
    { title: "Share", minor: true, number: true, width: "5rem", value: now, text: (i) => formatShare(now(i), view.sum) },
    { title: "Until the end", minor: true, number: true, width: "8rem", tip: "How much it changed from then on", value: later, text: (i) => `${later(i) > 0 ? "+" : ""}${formatBytes(later(i))}` },
    { title: "Site", wide: true, width: "minmax(12rem, 1fr)", value: (i) => siteText(view.rows[i]), cell: (i) => siteLink(view.rows[i]) },
    { title: "Dev", minor: true, width: "3.6rem", value: (i) => sites.device[view.rows[i]], text: (i) => deviceName(sites.device[view.rows[i]]) },
  ];
}

function fillMoment(view) {
  view.at = nearestMoment(picked.t);
  const values = new Float64Array(sites.n);
  for (const [row, series] of seriesOf) values[row] = series[view.at];
  view.sum = values.reduce((a, b) => a + b, 0);
  const at = formatTime(main.moments[view.at]), asked = formatTime(picked.t);
  const next = asked === at ? "" : ` (the ${picked.t < main.moments[view.at] ? "next sample after" : "last sample before"} ${asked})`;
  view.text.textContent = `At ${at}${next} the sites with a series held ${formatBytes(view.sum)}`
    + (seriesOf.size < sites.n ? `; ${plural(sites.n - seriesOf.size, "site has", "sites have")} none.` : ".");
  view.table.setFilter((i) => values[view.rows[i]] > 0);
  view.flame.setValues(values, formatBytes);
}

function showMoment() {
  const body = bodyOf("moment");
  const fullest = fullestMoment();
  if (fullest < 0) {
    body.append(el("p", { class: "quiet" }, "No sample of the sites has anything: the program was over before, or CUWARDEN_GROWTH was off."));
    return;
  }
  const view = { rows: [...seriesOf.keys()], at: 0, sum: 0, text: el("p", { class: "soft", "aria-live": "polite" }) };
  const held = el("div", {});
  body.append(view.text, held);
  view.table = new Table(held, {
    name: "held", isTall: needsLines(), label: "Held at the moment", n: view.rows.length, columns: momentColumns(view), sort: 0, most: 300, least: "52rem",
    none: "Nothing was held.", onpick: (i) => goToSite(view.rows[i]),
  });
  body.append(el("p", {}));
  view.flame = new Flame(body, { label: "Flame graph of the moment" });
  listen("moment", drawSoon(() => fillMoment(view)));
  if (picked.t === null) pickMoment(main.moments[fullest]);
  else tell("moment", picked.t);
}
