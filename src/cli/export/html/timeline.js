/* SPDX-License-Identifier: MIT */
/*
 * Use over time, one chart for each device: what was live, idle in the pool and lost to rounding as
 * areas, the device's use and the limit as lines, the level of pressure as a band below, and marks
 * for events. However many events there are, a pixel shows the worst of its moment.
 */
const PLOT = 190;
const LANE = 8;
const MARKS = 16;
const LEFT = 76;
const RIGHT = 12;
const levels = ["low", "medium", "high", "critical"];
const marks = [ /* the first one wins where two meet */
  { type: "oom", colour: "oom", title: "out of memory", shape: "cross" },
  { type: "fatal", colour: "oom", title: "fatal error", shape: "cross" },
  { type: "invalid-free", colour: "high", title: "invalid free", shape: "cross" },
  { type: "limit", colour: "change", title: "limit changed", shape: "diamond" },
  { type: "trim", colour: "trim", title: "trim", shape: "triangle" },
];

class Timeline {
  constructor(host, device) {
    this.device = device;
    this.points = device.points;
    this.changes = { t: [], level: [] };
    this.limits = device.limit > 0 ? [{ t: 0, bytes: device.limit }] : [];
    this.marked = [];
    this.isWhole = false;
    this.hover = null;
    this.build(host);
  }

  build(host) {
    const { device } = this;
    const name = device.isHost ? "Host (pinned memory)" : `Device ${device.ordinal}`;
    this.read = el("span", { class: "read" });
    this.canvas = el("canvas", {
      tabindex: "0", role: "slider", "aria-label": `Moment, ${name}`, "aria-valuemin": 0,
      "aria-valuemax": Math.round(main.duration / 1e6),
      onpointerdown: (event) => this.onPointer(event), onpointermove: (event) => this.onPointer(event),
      onpointerleave: () => this.setHover(null), onkeydown: (event) => this.onKey(event),
    });
    this.root = el("div", { class: "chart" },
      el("div", { class: "head" }, el("b", {}, name), el("span", { class: "soft" }, device.isHost ? "" : device.name), this.read),
      device.points.n < 2 ? el("p", { class: "quiet" }, fewSamples(device.points)) : null, this.canvas);
    host.append(this.root);
    this.draw = drawSoon(() => this.drawNow());
    new ResizeObserver(this.draw).observe(this.root);
    for (const topic of ["theme", "moment", "print"]) listen(topic, () => (topic === "print" ? this.drawNow() : this.draw()));
    listen("events", () => this.takeEvents());
    listen("whole", (isWhole) => {
      this.isWhole = isWhole;
      this.draw();
    });
  }

  /* Until the first change of the limit nobody knows what it was. */
  takeEvents() {
    const types = marks.map((mark) => strings.indexOf(mark.type));
    const level = new Map(levels.map((name, i) => [strings.indexOf(name), i]));
    const pressure = strings.indexOf("pressure");
    const changed = [];
    this.marked = marks.map(() => []);
    for (let i = 0; i < events.n; i++) {
      if (events.device[i] !== this.device.ordinal) continue;
      if (events.type[i] === pressure) {
        if (this.changes.t.length === 0) this.addLevel(0, level.get(events.before[i]));
        this.addLevel(events.t[i], level.get(events.level[i]));
        continue;
      }
      const mark = types.indexOf(events.type[i]);
      if (mark >= 0) this.marked[mark].push(events.t[i]);
      if (mark >= 0 && marks[mark].type === "limit") changed.push({ t: events.t[i], bytes: events.bytes[i] });
    }
    if (changed.length > 0) this.limits = changed;
    this.draw();
  }

  addLevel(t, level) {
    this.changes.t.push(t);
    this.changes.level.push(level || 0);
  }

  /* ---- where things are ---- */

  x(t) {
    return LEFT + (t / main.duration) * (this.width - LEFT - RIGHT);
  }

  timeAt(x) {
    return Math.max(0, Math.min(1, (x - LEFT) / (this.width - LEFT - RIGHT))) * main.duration;
  }

  most() {
    const { points, device } = this;
    let most = 1;
    for (let i = 0; i < points.n; i++) most = Math.max(most, points.held[i], points.live[i] + points.idle[i], points.used[i]);
    if (this.isWhole) most = Math.max(most, device.total);
    for (const limit of this.limits) if (limit.bytes < most * 2.5 || this.isWhole) most = Math.max(most, limit.bytes);
    return most * 1.06;
  }

  indexAt(t) {
    const all = this.points.t;
    let best = 0;
    for (let i = 0; i < all.length; i++) if (Math.abs(all[i] - t) < Math.abs(all[best] - t)) best = i;
    return best;
  }

  /* ---- drawing ---- */

  drawNow() {
    const drawing = beginDrawing(this.canvas, 6 + PLOT + LANE + MARKS + 22);
    this.context = drawing.context;
    this.width = drawing.width;
    this.scale = this.most();
    this.y = (bytes) => 6 + PLOT - (bytes / this.scale) * PLOT;
    this.drawGrid();
    this.drawLevels();
    this.drawAreas();
    this.drawLines();
    this.drawMarks();
    this.drawMoments();
    this.tellMoment();
  }

  /* Steps of 1, 2 or 5 times a power; of 1024 for bytes. */
  drawGrid() {
    const { context } = this;
    const unit = 1024 ** Math.floor(Math.log(this.scale) / Math.log(1024));
    const step = niceStep(this.scale / unit / 4) * unit;
    context.font = "11.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let value = 0; value < this.scale; value += step) {
      context.fillStyle = colour(value === 0 ? "line" : "grid");
      context.fillRect(LEFT, Math.round(this.y(value)), this.width - LEFT - RIGHT, 1);
      context.fillStyle = colour("faint");
      context.fillText(formatBytes(value), LEFT - 8, this.y(value));
    }
    const seconds = main.duration / 1e9;
    const each = niceStep(seconds / Math.max(2, (this.width - LEFT) / 110)) * 1e9;
    const below = 6 + PLOT + LANE + MARKS + 10;
    for (let t = 0; t <= main.duration; t += each) {
      context.textAlign = t === 0 ? "left" : this.x(t) > this.width - 45 ? "right" : "center";
      context.fillStyle = colour("faint");
      context.fillText(formatAxis(t, each), this.x(t) + (t > 0 && this.x(t) > this.width - 45 ? RIGHT : 0), below);
      context.fillStyle = colour("line");
      context.fillRect(Math.round(this.x(t)), 6 + PLOT, 1, LANE + MARKS);
    }
  }

  area(of, below, name) {
    const { context } = this;
    context.beginPath();
    for (const [x, y] of this.path(of)) context.lineTo(x, y);
    for (const [x, y] of this.path(below).reverse()) context.lineTo(x, y);
    context.closePath();
    context.fillStyle = colour(name);
    context.fill();
  }

  drawAreas() {
    const { points } = this;
    const live = (i) => points.live[i];
    const idle = (i) => points.live[i] + points.idle[i];
    const held = (i) => Math.max(points.held[i], idle(i));
    this.area(live, () => 0, "live");
    this.area(idle, live, "idle");
    this.area(held, idle, "rest");
  }

  /* What one sample found is drawn until the end, and wide enough to be seen. */
  path(of) {
    const { points } = this;
    const at = Array.from({ length: points.n }, (_, i) => [this.x(points.t[i]), this.y(of(i))]);
    return points.n === 1 ? [[Math.min(at[0][0], this.width - RIGHT - 4), at[0][1]], [this.width - RIGHT, at[0][1]]] : at;
  }

  line(of, name, dash) {
    const { context } = this;
    context.beginPath();
    for (const [x, y] of this.path(of)) context.lineTo(x, y);
    this.stroke(name, dash);
  }

  stroke(name, dash) {
    const { context } = this;
    context.strokeStyle = colour(name);
    context.lineWidth = 1.5;
    context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
  }

  drawLines() {
    const { points, device, context } = this;
    this.line((i) => Math.max(points.held[i], points.live[i] + points.idle[i]), "held", []);
    if (!device.isHost && points.used.some((bytes) => bytes > 0)) this.line((i) => points.used[i], "used", [4, 3]);
    this.drawLimit();
    if (device.total > 0 && device.total < this.scale) {
      context.beginPath();
      context.moveTo(LEFT, this.y(device.total));
      context.lineTo(this.width - RIGHT, this.y(device.total));
      this.stroke("faint", []);
      context.textAlign = "left";
      context.fillStyle = colour("soft");
      context.fillText(`${formatBytes(device.total)} in all`, LEFT + 6, this.y(device.total) + 9);
    }
  }

  drawLimit() {
    const { context, limits } = this;
    context.beginPath();
    limits.forEach((limit, i) => {
      const end = i + 1 < limits.length ? limits[i + 1].t : main.duration;
      if (limit.bytes === 0 || limit.bytes > this.scale) return;
      context.moveTo(this.x(limit.t), this.y(limit.bytes));
      context.lineTo(this.x(end), this.y(limit.bytes));
    });
    this.stroke("limit", [7, 3]);
  }

  /* The highest level of each pixel. */
  drawLevels() {
    const { context, changes } = this;
    const worst = new Uint8Array(Math.ceil(this.width) + 2);
    for (let i = 0; i < changes.t.length; i++) {
      const last = Math.floor(this.x(i + 1 < changes.t.length ? changes.t[i + 1] : main.duration));
      for (let x = Math.floor(this.x(changes.t[i])); x <= last; x++)
        if (changes.level[i] > worst[x]) worst[x] = changes.level[i];
    }
    for (let x = LEFT, from = LEFT; x <= this.width - RIGHT; x++) {
      if (worst[x + 1] === worst[x] && x + 1 <= this.width - RIGHT) continue;
      if (worst[x] > 0) {
        context.fillStyle = colour(levels[worst[x]]);
        context.fillRect(from, 6 + PLOT + 2, x + 1 - from, LANE - 2);
        context.globalAlpha = 0.07;
        context.fillRect(from, 6, x + 1 - from, PLOT);
        context.globalAlpha = 1;
      }
      from = x + 1;
    }
  }

  /* One mark for seven pixels. */
  drawMarks() {
    const taken = new Map();
    this.marked.forEach((times, kind) => {
      for (const t of times) {
        const at = Math.round(this.x(t) / 7);
        if (!taken.has(at)) taken.set(at, { kind, x: at * 7 });
      }
    });
    for (const mark of taken.values()) drawMark(this.context, marks[mark.kind], mark.x, 6 + PLOT + LANE + MARKS / 2);
  }

  drawMoments() {
    const { context } = this;
    for (const [t, dash] of [[this.hover, [2, 2]], [picked.t, []]]) {
      if (t === null) continue;
      context.beginPath();
      context.moveTo(this.x(t), 2);
      context.lineTo(this.x(t), 6 + PLOT + LANE);
      context.strokeStyle = colour("pick");
      context.lineWidth = 1;
      context.setLineDash(dash);
      context.stroke();
      context.setLineDash([]);
    }
  }

  /* ---- use ---- */

  textAt(t) {
    const { points } = this;
    if (points.n === 0) return "";
    const i = this.indexAt(t);
    const at = [`${formatTime(points.t[i])}`, `live ${formatBytes(points.live[i])}`, `idle ${formatBytes(points.idle[i])}`, `held ${formatBytes(points.held[i])}`];
    if (!this.device.isHost && points.used[i] > 0) at.push(`device in use ${formatBytes(points.used[i])}`);
    const level = this.levelAt(t);
    if (level > 0) at.push(`pressure ${levels[level]}`);
    return at.join("  \u00b7  ");
  }

  levelAt(t) {
    let level = 0;
    for (let i = 0; i < this.changes.t.length && this.changes.t[i] <= t; i++) level = this.changes.level[i];
    return level;
  }

  tellMoment() {
    const t = this.hover !== null ? this.hover : picked.t;
    this.read.textContent = t === null ? "" : this.textAt(t);
    if (picked.t === null) return;
    this.canvas.setAttribute("aria-valuenow", Math.round(picked.t / 1e6));
    this.canvas.setAttribute("aria-valuetext", this.textAt(picked.t));
  }

  setHover(t) {
    this.hover = t;
    this.draw();
  }

  onPointer(event) {
    const t = this.timeAt(event.offsetX);
    if (event.type === "pointerdown") this.canvas.setPointerCapture(event.pointerId);
    if (event.buttons & 1) pickMoment(t);
    this.setHover(t);
  }

  onKey(event) {
    const all = this.points.t;
    if (all.length === 0) return;
    const at = this.indexAt(picked.t === null ? 0 : picked.t);
    const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageUp: at + 10, PageDown: at - 10, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    pickMoment(all[Math.max(0, Math.min(all.length - 1, to))]);
    event.preventDefault();
  }
}

function fewSamples(points) {
  if (points.n === 0) return "No sample was taken.";
  return `There is one sample only: it was taken at ${formatTime(points.t[0])}, ${formatTime(Math.max(0, main.duration - points.t[0]))} before the end.`;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((factor) => factor * power >= least) * power;
}

function formatAxis(t, each) {
  if (t === 0) return "0";
  if (main.duration < 1e6) return `${+(t / 1e3).toPrecision(3)} \u00b5s`;
  if (main.duration < 1e9) return `${+(t / 1e6).toPrecision(6)} ms`;
  return main.duration < 120e9 || each < 1e9 ? `${+(t / 1e9).toPrecision(6)} s` : formatTime(t).replace(/\.0$/, "");
}

function drawMark(context, mark, x, y) {
  const size = 4;
  context.beginPath();
  if (mark.shape === "cross") {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x - size, y + size);
    context.lineTo(x + size, y - size);
    context.strokeStyle = colour(mark.colour);
    context.lineWidth = 2;
    context.stroke();
    return;
  }
  context.moveTo(x, y - size);
  context.lineTo(x + size, mark.shape === "diamond" ? y : y + size);
  if (mark.shape === "diamond") context.lineTo(x, y + size);
  context.lineTo(x - size, mark.shape === "diamond" ? y : y + size);
  context.closePath();
  context.fillStyle = colour(mark.colour);
  context.fill();
}

/* ---- the moment that is picked, for all devices ---- */

const picked = { t: null };

function pickMoment(t) {
  picked.t = t;
  tell("moment", t);
}

function legendEntry(text, name, style) {
  const mark = el("i", { class: style || "" });
  mark.style[style ? "borderTopColor" : "background"] = `var(--${name})`;
  return el("span", {}, mark, text);
}

function showTimeline() {
  const body = bodyOf("timeline");
  const panel = el("div", { class: "panel charts" });
  const whole = el("input", { type: "checkbox", onchange: () => tell("whole", whole.checked) });
  body.append(el("div", { class: "controls" },
    el("span", { class: "soft" }, "Click, drag or use the arrow keys to pick a moment."), el("span", { class: "grow" }),
    el("label", {}, whole, "Scale to the whole device")), panel);
  for (const device of main.devices) new Timeline(panel, device);
  if (main.devices.length === 0) panel.append(el("p", { class: "quiet" }, "The program used no device."));
  panel.append(el("div", { class: "legend" },
    legendEntry("live", "live"), legendEntry("idle in the pool", "idle"), legendEntry("rounding", "rest"),
    legendEntry("held", "held", "stroke"), legendEntry("device in use, by all processes", "used", "stroke dash"),
    legendEntry("limit", "limit", "stroke dash"), legendEntry("pressure medium", "medium"),
    legendEntry("high", "high"), legendEntry("critical", "critical"), ...marks.slice(0, 1).concat(marks.slice(2)).map(markEntry)));
}

function markEntry(mark) {
  const signs = { cross: "\u2715", diamond: "\u25c6", triangle: "\u25b2" };
  const sign = el("b", {}, `${signs[mark.shape]} `);
  sign.style.color = `var(--${mark.colour})`;
  return el("span", {}, sign, mark.title);
}
