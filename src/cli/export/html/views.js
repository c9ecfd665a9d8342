/* SPDX-License-Identifier: MIT */
/* Growth, the pool, and events. */

/* ---- growth ---- */

function showSuspects(body) {
  const rows = [];
  for (let i = 0; i < sites.n; i++) if (sites.suspect[i]) rows.push(i);
  body.append(el("h3", {}, "Sites that keep growing"));
  if (rows.length === 0) {
    body.append(el("p", { class: "quiet" }, main.moments.length === 0 ? "Nothing was sampled." : "None: no site rose in a way that looks like a leak."));
    return;
  }
  new Table(body, {
    name: "suspect", isTall: needsLines(), label: "Sites that keep growing", n: rows.length, sort: 0, most: 340, least: "52rem", onpick: (k) => goToSite(rows[k]),
    columns: [
      { title: "Growth", number: true, width: "8rem", tip: "Bytes for each second", value: (k) => sites.slope[rows[k]], text: (k) => `${formatBytes(sites.slope[rows[k]])}/s` },
      { title: "r\u00b2", minor: true, number: true, width: "4rem", tip: "How well a straight line fits", value: (k) => sites.r2[rows[k]], text: (k) => sites.r2[rows[k]].toFixed(2) },
      { title: "Live", minor: true, number: true, width: "7rem", value: (k) => sites.liveBytes[rows[k]], text: (k) => formatBytes(sites.liveBytes[rows[k]]) },
      { title: "Over time", minor: true, width: "12rem", cell: (k) => (seriesOf.has(rows[k]) ? spark(seriesOf.get(rows[k]), 22, "live bytes over time") : "") },
      { title: "Site", wide: true, width: "minmax(12rem, 1fr)", value: (k) => siteText(rows[k]), cell: (k) => siteLink(rows[k]) },
    ],
  });
}

function showSteps(body) {
  if (steps.n === 0) return;
  body.append(el("h3", {}, "Steps of the program (NVTX)"));
  new Table(body, {
    name: "step", label: "Steps of the program", n: steps.n, sort: 2, most: 300, least: "48rem",
    columns: [
      { title: "Step", wide: true, width: "minmax(6rem, 1fr)", value: (i) => strings[steps.name[i]], text: (i) => strings[steps.name[i]] },
      { title: "Times", minor: true, number: true, width: "6rem", value: (i) => steps.steps[i], text: (i) => formatCount(steps.steps[i]) },
      { title: "Each adds", number: true, width: "8rem", tip: "What the process holds more after each", value: (i) => steps.slope[i], text: (i) => formatBytes(steps.slope[i]) },
      { title: "r\u00b2", minor: true, number: true, width: "4rem", value: (i) => steps.r2[i], text: (i) => steps.r2[i].toFixed(2) },
      { title: "At the first", minor: true, number: true, width: "8rem", value: (i) => steps.firstBytes[i], text: (i) => formatBytes(steps.firstBytes[i]) },
      { title: "At the last", minor: true, number: true, width: "8rem", value: (i) => steps.lastBytes[i], text: (i) => formatBytes(steps.lastBytes[i]) },
      { title: "Trend", width: "6rem", value: (i) => steps.rising[i], cell: (i) => (steps.rising[i] ? el("span", { class: "badge growing" }, "rising") : "") },
    ],
  });
}

function showRegrowth(body) {
  if (regrowth.n === 0) return;
  body.append(el("h3", {}, "Blocks that grow by being copied"));
  new Table(body, {
    name: "regrowth", isTall: needsLines(), label: "Blocks that grow by being copied", n: regrowth.n, sort: 1, most: 300, least: "48rem",
    onpick: (i) => regrowth.site[i] >= 0 && goToSite(regrowth.site[i]),
    columns: [
      { title: "Resizes", number: true, width: "6rem", value: (i) => regrowth.resizes[i], text: (i) => formatCount(regrowth.resizes[i]) },
      { title: "Copied", minor: true, number: true, width: "7rem", value: (i) => regrowth.copied[i], text: (i) => formatBytes(regrowth.copied[i]) },
      { title: "Factor", minor: true, number: true, width: "6rem", tip: "Size of the new block by that of the old one", value: (i) => regrowth.factor[i], text: (i) => `\u00d7${regrowth.factor[i].toFixed(2)}` },
      { title: "Reached", minor: true, number: true, width: "7rem", value: (i) => regrowth.capacity[i], text: (i) => formatBytes(regrowth.capacity[i]) },
      { title: "Site", wide: true, width: "minmax(12rem, 1fr)", cell: (i) => siteLink(regrowth.site[i]) },
    ],
  });
}

function showGrowth() {
  const body = bodyOf("growth");
  showSuspects(body);
  showOld(body);
  showSteps(body);
  showRegrowth(body);
}

/* ---- pool ---- */

function bucketColumns(buckets) {
  const asked = (i) => buckets.hits[i] + buckets.misses[i];
  const most = buckets.bytes.reduce((a, b) => Math.max(a, b), 1);
  return [
    { title: "Size", number: true, width: "7rem", value: (i) => buckets.size[i], text: (i) => formatBytes(buckets.size[i]) },
    { title: "Kind", minor: true, width: "7rem", value: (i) => strings[buckets.kind[i]], text: (i) => strings[buckets.kind[i]] },
    { title: "Hits", minor: true, number: true, width: "7rem", value: (i) => buckets.hits[i], text: (i) => formatCount(buckets.hits[i]) },
    { title: "Misses", minor: true, number: true, width: "7rem", value: (i) => buckets.misses[i], text: (i) => formatCount(buckets.misses[i]) },
    { title: "Hit rate", number: true, width: "6rem", value: (i) => (asked(i) ? buckets.hits[i] / asked(i) : -1), text: (i) => formatShare(buckets.hits[i], asked(i)) },
    { title: "Idle blocks", minor: true, number: true, width: "7rem", value: (i) => buckets.blocks[i], text: (i) => formatCount(buckets.blocks[i]) },
    { title: "Idle", number: true, width: "7rem", value: (i) => buckets.bytes[i], text: (i) => formatBytes(buckets.bytes[i]) },
    { title: "", minor: true, width: "minmax(6rem, 1fr)", cell: (i) => meter([[buckets.bytes[i], "idle"]], most, "") },
  ];
}

function showPoolOf(body, device) {
  const asked = device.hits + device.misses;
  const name = device.isHost ? "Host" : `Device ${device.ordinal}`;
  body.append(el("h3", {}, name), el("p", { class: "soft" }, asked
    ? `${formatShare(device.hits, asked)} of ${plural(asked, "request", "requests")} served from idle blocks; ${formatBytes(device.idleBytes)} idle at the end.`
    : `The pool was not asked; ${formatBytes(device.idleBytes)} idle at the end.`));
  if (device.buckets.n > 0)
    new Table(body, { name: `bucket${device.ordinal}`, label: `Buckets, ${name}`, n: device.buckets.n, columns: bucketColumns(device.buckets), sort: 6, most: 340, least: "54rem", none: "No bucket was used." });
}

function showPool() {
  const body = bodyOf("pool");
  if (main.process.mode === "track") body.append(el("p", { class: "quiet" }, "The program ran without the pool (CUWARDEN_MODE=track)."));
  else for (const device of main.devices) showPoolOf(body, device);
  showPressure(body);
}

/* ---- events ---- */

function eventText(i) {
  const bytes = events.bytes[i];
  const cause = strings[events.cause[i]];
  const told = {
    oom: () => `${formatBytes(bytes)} asked for${cause ? `; ${cause}` : ""}`,
    pressure: () => `${strings[events.before[i]]} \u2192 ${strings[events.level[i]]}${bytes ? `, ${formatBytes(bytes)} in use` : ""}`,
    trim: () => `${bytes ? `${formatBytes(bytes)} asked for` : ""}${cause ? `; ${cause}` : ""}`,
    limit: () => (bytes ? `to ${formatBytes(bytes)}` : "to none"),
  }[strings[events.type[i]]];
  return told ? told() : bytes ? formatBytes(bytes) : "";
}

function eventColumns() {
  return [
    { title: "Time", number: true, width: "8rem", value: (i) => events.t[i], text: (i) => formatTime(events.t[i]) },
    { title: "Event", width: "7rem", value: (i) => strings[events.type[i]], cell: (i) => badge(strings[events.type[i]], strings[events.level[i]]) },
    { title: "Dev", minor: true, width: "4rem", value: (i) => events.device[i], text: (i) => deviceName(events.device[i]) },
    { title: "What", wide: true, width: "minmax(6rem, .8fr)", value: (i) => events.bytes[i], text: eventText },
    { title: "Times", minor: true, number: true, width: "5rem", value: (i) => events.count[i], text: (i) => formatCount(events.count[i]) },
    { title: "Site", minor: true, wide: true, width: "minmax(6rem, 1fr)", value: (i) => events.site[i], cell: (i) => siteLink(events.site[i], true) },
  ];
}

function showEvents() {
  const body = bodyOf("events");
  showAccounts(body);
  if (events.n === 0) {
    body.append(el("p", { class: "quiet" }, "Nothing out of the ordinary happened."));
    return;
  }
  const types = valuesPresent(events.type).map((i) => strings[i]).sort();
  const count = el("span", { class: "soft", role: "status" });
  let table = null;
  body.append(el("div", { class: "controls" },
    choice("Show", [["", "all"], ...types.map((name) => [name, name])], (value) => {
      const wanted = strings.indexOf(value);
      table.setFilter(value ? (i) => events.type[i] === wanted : null);
    }),
    el("span", { class: "soft" }, "A click picks the moment in the timeline."), el("span", { class: "grow" }), count));
  table = new Table(body, {
    name: "event", isTall: needsLines(), label: "Events", n: events.n, columns: eventColumns(), sort: 0, down: false, most: 400, least: "50rem",
    onpick: (i) => pickMoment(events.t[i]),
    onarrange: (order) => { count.textContent = plural(order.length, "event", "events"); },
  });
}
