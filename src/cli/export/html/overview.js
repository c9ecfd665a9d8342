/* SPDX-License-Identifier: MIT */
/* The process, its devices and the sums: from the part that stands before the scripts. */

function fact(name, value) {
  return value === "" || value === undefined ? null : el("span", {}, `${name} `, el("b", {}, value));
}

function tile(name, value, more, isBad) {
  return el("div", { class: `panel tile${isBad ? " bad" : ""}` }, el("div", { class: "name" }, name),
    el("div", { class: "value" }, value), el("div", { class: "more" }, more));
}

function endText(process) {
  const code = process.code === undefined ? "" : ` with status ${process.code}`;
  if (main.alive || process.end === "running") return "still running";
  return process.end === "exit" ? `exited${code}` : `${process.end || "unknown"}${code}`;
}

function driverText(version) {
  return version ? `CUDA ${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}` : "";
}

function showProcess(body) {
  const { process } = main;
  const started = process.startMs ? new Date(process.startMs).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "";
  document.title = `${baseName(process.exe) || "process"} ${process.pid} \u2013 cuwarden`;
  body.append(
    el("h1", {}, baseName(process.exe) || `Process ${process.pid}`),
    el("code", { class: "command" }, process.command || process.exe),
    el("p", { class: "facts" },
      fact("process", String(process.pid)), fact("rank", process.rank), fact("on", process.host), fact("started", started),
      fact("ran", formatTime(process.duration)), fact("end", endText(process)), fact("driver", driverText(process.driver)),
      fact("mode", process.mode), fact("in", process.cwd)));
  document.getElementById("foot").textContent =
    `Made by cuwarden ${process.version} from ${main.source || "a report"}. Everything is in this file; nothing is fetched.`;
}

function leftTile() {
  const { left } = main;
  const none = left.isLeaked ? "nothing was left" : "nothing";
  return tile(left.isLeaked ? "Leaked" : "Still allocated", formatBytes(left.bytes),
    left.blocks ? `${plural(left.blocks, "block", "blocks")} from ${plural(left.sites, "site", "sites")}` : none, left.isLeaked && left.bytes > 0);
}

function showTiles(body) {
  const { summary } = main;
  const served = summary.hits + summary.misses;
  body.append(el("div", { class: "tiles" },
    leftTile(),
    tile("Peak", formatBytes(summary.peakBytes), "most that was live at once"),
    tile("Allocations", formatCount(summary.allocs), `${plural(summary.frees, "free", "frees")}, ${formatCount(summary.failed)} failed`),
    tile("Pool hit rate", served ? formatShare(summary.hits, served) : "\u2013", served ? `${formatCount(summary.hits)} of ${formatCount(served)} served` : "the pool was not asked"),
    summary.ooms > 0 ? tile("Out of memory", formatCount(summary.ooms), summary.ooms === 1 ? "call" : "calls", true) : null));
}

function meter(parts, whole, label) {
  const bar = el("span", { class: "meter", role: "img", "aria-label": label });
  for (const [bytes, name] of parts) {
    const fill = el("i", { class: name });
    fill.style.width = `${Math.min(100, (bytes / (whole || 1)) * 100)}%`;
    bar.append(fill);
  }
  return bar;
}

function deviceRow(device) {
  const number = (text) => el("td", { class: "num" }, text);
  const most = device.total || device.peakBytes || 1;
  return el("tr", {},
    el("td", {}, device.isHost ? "host" : String(device.ordinal)),
    el("td", { title: device.uuid }, device.isHost ? "pinned memory" : device.name),
    number(formatBytes(device.liveBytes)), number(formatBytes(device.idleBytes)), number(formatBytes(device.peakBytes)),
    number(device.peakBytes ? formatTime(device.peakT) : ""), number(device.limit ? formatBytes(device.limit) : "\u2013"),
    number(device.total ? formatBytes(device.total) : "\u2013"),
    el("td", {}, meter([[device.liveBytes, ""], [device.idleBytes, "idle"]], most, `${formatShare(device.held, most)} held`)),
    el("td", {}, badge(device.isHost ? "" : device.level)));
}

function plainTable(titles, rows) {
  const head = el("tr", {}, ...titles.map((title) => el("th", { class: title.endsWith(">") ? "num" : "", scope: "col" }, title.replace(">", ""))));
  for (const row of rows) [...row.children].forEach((cell, i) => cell.setAttribute("data-title", titles[i].replace(">", "")));
  return el("div", { class: "across" }, el("table", { class: `plain${titles.length > 4 ? " many" : ""}` }, el("thead", {}, head), el("tbody", {}, ...rows)));
}

function tensorRow(line) {
  const number = (text) => el("td", { class: "num" }, text);
  return el("tr", {},
    el("td", { title: line.file }, line.file ? `${line.function} ${baseName(line.file)}:${line.line}` : "C++ (autograd)"),
    number(formatBytes(line.bytes)), number(formatCount(line.count)), number(line.exitBytes ? formatBytes(line.exitBytes) : "\u2013"),
    number(String(line.device)), el("td", {}, meter([[line.bytes, ""]], main.tensors.bytes, formatShare(line.bytes, main.tensors.bytes))));
}

function showTensors(body) {
  const { tensors } = main;
  if (!tensors.framework || tensors.lines.length === 0) return;
  const rest = tensors.all - tensors.lines.length;
  body.append(el("div", { class: "panel", id: "tensors" },
    el("h2", {}, `Tensors of ${tensors.framework}`),
    el("p", { class: "soft" }, `${formatBytes(tensors.bytes)} in ${plural(tensors.count, "tensor", "tensors")} at ${formatTime(tensors.t)}, ` +
      `in segments of ${formatBytes(tensors.segmentBytes)}, by the line that made them${rest > 0 ? `; ${plural(rest, "more line", "more lines")} not shown` : ""}.`),
    plainTable(["Line", "At the peak>", "Tensors>", "At exit>", "Device>", "Share"], tensors.lines.map(tensorRow))));
}

function showOverview() {
  const body = document.getElementById("overview");
  showProcess(body);
  showTiles(body);
  for (const text of main.diagnostics) body.append(el("p", { class: "note" }, text));
  if (main.sitesShown < main.sitesAll)
    body.append(el("p", { class: "note" }, `Only ${formatCount(main.sitesShown)} of ${formatCount(main.sitesAll)} sites were asked for. Charts and sums above are of all.`));
  if (main.devices.length > 0)
    body.append(el("div", { class: "panel" }, plainTable(
      ["Device", "Name", "Live>", "Idle>", "Peak>", "at>", "Limit>", "Total>", "Live and idle", "Pressure"], main.devices.map(deviceRow))));
  showTensors(body);
}
