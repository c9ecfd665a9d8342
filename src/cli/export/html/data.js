/* SPDX-License-Identifier: MIT */
/* What the page knows. Records are columns of numbers; a column that is one number holds for all. */

/* The element's text is not kept: the numbers are many. */
function readPart(name) {
  const element = document.getElementById(`data-${name}`);
  const value = JSON.parse(element.textContent);
  element.remove();
  return value;
}

function isLarge(values) {
  for (const value of values) if (value > 0x7fffffff || value < -0x80000000 || !Number.isInteger(value)) return true;
  return false;
}

function toColumn(values, n) {
  const all = Array.isArray(values) ? values : [values];
  const typed = new (isLarge(all) ? Float64Array : Int32Array)(n);
  if (Array.isArray(values)) typed.set(values);
  else typed.fill(values);
  return typed;
}

function toTable(part) {
  const table = { n: part.n };
  for (const [name, values] of Object.entries(part)) if (name !== "n") table[name] = toColumn(values, part.n);
  return table;
}

const main = readPart("main");
for (const device of main.devices) device.points = toTable(device.points);
main.duration = main.devices.reduce(
  (most, device) => Math.max(most, device.points.t[device.points.n - 1] || 0),
  Math.max(main.process.duration, 1));

let strings, apis, modules, frames, nodes, sites, leaves, steps, regrowth, blocks, events, whole;
let siteFrames; /* as far as they were asked for */
const seriesOf = new Map(); /* row of sites -> bytes at main.moments */

function readSites() {
  strings = readPart("strings");
  apis = readPart("apis");
  modules = toTable(readPart("modules"));
  frames = toTable(readPart("frames"));
  nodes = toTable(readPart("nodes"));
  sites = toTable(readPart("sites"));
  leaves = Int32Array.from(readPart("leaves"));
  siteFrames = new Int32Array(sites.n).fill(-1);
  for (const [row, values] of readPart("series")) seriesOf.set(row, values);
  steps = toTable(readPart("steps"));
  regrowth = toTable(readPart("regrowth"));
  blocks = toTable(readPart("blocks"));
  whole = readPart("whole");
  for (const device of main.devices) device.buckets = toTable(device.buckets);
}

function readEvents() {
  events = toTable(readPart("events"));
  const t = new Float64Array(events.n);
  for (let i = 0, sum = 0; i < events.n; i++) t[i] = sum += events.t[i];
  events.t = t;
}

/* ---- frames; behind the last one stand the functions that were called ---- */

function frameName(frame) {
  if (frame >= frames.n) return apis[frame - frames.n];
  const name = strings[frames.name[frame]];
  if (name) return name;
  const module = frames.module[frame];
  return module < 0 ? "?" : `${moduleName(module)}+0x${frames.offset[frame].toString(16)}`;
}

function moduleName(module) {
  return module < 0 ? "" : baseName(strings[modules.path[module]]);
}

function frameModule(frame) {
  return frame >= frames.n ? -2 : frames.module[frame];
}

function framePlace(frame) {
  if (frame >= frames.n) return "";
  const file = strings[frames.file[frame]];
  if (!file) return moduleName(frames.module[frame]);
  const line = frames.line[frame];
  return line > 0 ? `${file}:${line}` : file;
}

/* Of a call: its line, or its address in the module. */
function frameAddress(frame) {
  if (frame >= frames.n) return "";
  if (frames.line[frame] > 0) return `${baseName(strings[frames.file[frame]])}:${frames.line[frame]}`;
  return strings[frames.name[frame]] && frames.module[frame] >= 0 ? `+0x${frames.offset[frame].toString(16)}` : "";
}

function isPython(frame) {
  return frame < frames.n && frames.python[frame] === 1;
}

function isInlined(frame) {
  return frame < frames.n && frames.inlined[frame] === 1;
}

/* ---- sites ---- */

function siteId(site) {
  return (sites.id[site] >>> 0).toString(16).padStart(8, "0");
}

/* Whose code it is: own, framework, python or library. */
function frameKind(frame) {
  return strings[frames.kind[frame]];
}

function isOwn(frame) {
  return isPython(frame) && frameKind(frame) === "own";
}

/* The frame by which the site is named: that which called, of a script the innermost of its own; or what was called
 * where no stack is known. */
function findSiteFrame(site) {
  const stack = stackOf(site);
  const script = stack.find(isOwn) ?? stack.find(isPython);
  if (script !== undefined) return script;
  const parent = nodes.parent[leaves[site]];
  return nodes.frame[parent < 0 ? leaves[site] : parent];
}

function siteFrame(site) {
  if (siteFrames[site] < 0) siteFrames[site] = findSiteFrame(site);
  return siteFrames[site];
}

function siteName(site) {
  return frameName(siteFrame(site));
}

/* What follows the name: no two sites with equal frames are alike, so the id stands where only code that is not shown
 * differs. */
function siteRest(site) {
  const place = baseName(framePlace(siteFrame(site)));
  return `${place === siteName(site) ? "" : place}${strings[sites.contrast[site]].replace(/ <- /g, " \u2190 ").replace(/ -> /g, " \u2192 ")}`;
}

function siteText(site) {
  return `${siteName(site)} ${siteRest(site)}`.trim();
}

/* Innermost first, without what was called. */
function stackOf(site) {
  const stack = [];
  for (let node = nodes.parent[leaves[site]]; node >= 0; node = nodes.parent[node]) stack.push(nodes.frame[node]);
  return stack;
}

/* "libtorch_cuda.so", of a package "torch", of Python's own library "Python". */
function codeName(frame) {
  const file = isPython(frame) ? strings[frames.file[frame]] : "";
  if (!file) return moduleName(frames.module[frame]) || "?";
  const found = /(?:site|dist)-packages\/([^/]+)/.exec(file);
  return found ? found[1].replace(/\.py$/, "") : "Python";
}

/* A stack as single frames and as lists of those that the program did not write: never of the innermost, and none where
 * neither the program nor a package has a line, as in texts (report/model/fold.h). */
function foldStack(stack) {
  const kinds = stack.map(frameKind);
  const hasOwn = kinds.includes("own");
  const isPackage = (i) => kinds[i] === "python" && isPython(stack[i]);
  const innermost = stack.findIndex((frame) => !isInlined(frame)); // what was inlined into it stands before
  const isKept = (i) => i <= innermost || (hasOwn ? kinds[i] === "own" : isPackage(i));
  if (!kinds.some((kind) => kind === "framework" || kind === "python")) return stack;
  if (!hasOwn && !stack.some((_, i) => isPackage(i))) return stack;
  const folded = [];
  for (let i = 0, end; i < stack.length; i = end) {
    for (end = i + 1; !isKept(i) && end < stack.length && !isKept(end);) end++;
    folded.push(end - i > 1 ? stack.slice(i, end) : stack[i]);
  }
  return folded;
}

const metrics = [
  { name: "live", title: "Live", unit: formatBytes, of: (i) => sites.liveBytes[i] + sites.goneBytes[i], tip: "never freed" },
  { name: "peak", title: "At peak", unit: formatBytes, of: (i) => sites.atPeakBytes[i], tip: "held when the device was fullest" },
  { name: "total", title: "Total", unit: formatBytes, of: (i) => sites.totalBytes[i], tip: "of all allocations" },
  { name: "count", title: "Count", unit: formatCount, of: (i) => sites.totalCount[i], tip: "number of allocations" },
];

function valuesOf(metric) {
  return Float64Array.from({ length: sites.n }, (_, i) => metric.of(i));
}

function deviceName(ordinal) {
  const device = main.devices.find((one) => one.ordinal === ordinal);
  return device && device.isHost ? "host" : ordinal === 64 ? "\u2013" : String(ordinal);
}

function matcherOf(words) {
  const pattern = /^\/(.+)\/$/.exec(words);
  if (pattern) {
    try {
      const expression = new RegExp(pattern[1], "i");
      return (text) => expression.test(text);
    } catch {
      return () => false;
    }
  }
  const lower = words.toLowerCase();
  return (text) => text.toLowerCase().includes(lower);
}
