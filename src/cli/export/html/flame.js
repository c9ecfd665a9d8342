/* SPDX-License-Identifier: MIT */
/*
 * A flame graph that hangs down: the outermost frame on top, the widest to the left. Only boxes of a
 * pixel or so are laid out, whatever the size of the tree.
 */
const BOX = 20;
const LEAST_PIXELS = 0.6;

/* Whose code a frame is, in the order of the legend. */
const kinds = [["own", "the program's own"], ["framework", "framework"], ["python", "Python"], ["library", "library"]];

/* The modules with most of the stacks' frames have a colour of their own. */
const moduleColour = new Map();

function rankModules() {
  const count = new Map();
  for (let i = 0; i < nodes.n; i++) {
    const module = frameModule(nodes.frame[i]);
    if (module >= 0) count.set(module, (count.get(module) || 0) + 1);
  }
  [...count].sort((a, b) => b[1] - a[1]).slice(0, 7).forEach(([module], i) => moduleColour.set(module, `c${i}`));
}

function boxColour(frame, isByModule) {
  if (frame >= frames.n) return "call";
  if (!isByModule) return frameKind(frame);
  return isPython(frame) ? "python" : moduleColour.get(frameModule(frame)) || "cx";
}

function kindTitle(frame) {
  return kinds.find(([name]) => name === frameKind(frame))[1];
}

class Flame {
  constructor(host, options) {
    Object.assign(this, { isByModule: false, tree: byFunction, active: -1, words: "", found: null, boxes: [] }, options);
    this.zoom = this.tree.n;
    this.build(host);
    this.draw = drawSoon(() => this.drawNow());
    new ResizeObserver(this.draw).observe(this.view);
    listen("theme", this.draw);
    listen("print", () => this.drawNow());
  }

  build(host) {
    this.search = el("input", {
      type: "search", placeholder: "Search frames", "aria-label": `Search, ${this.label}`,
      oninput: () => this.setWords(this.search.value),
    });
    this.matched = el("span", { class: "soft matched", role: "status" });
    this.crumbs = el("div", { class: "crumbs" });
    this.read = el("div", { class: "read soft", "aria-live": "polite" });
    this.canvas = el("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "flame graph",
      "aria-label": `${this.label}: arrow keys move, Enter zooms, Escape zooms out`,
      onpointermove: (event) => this.point(this.hit(event), event), onpointerleave: () => this.point(-1),
      onclick: (event) => this.onClick(event), onkeydown: (event) => this.onKey(event),
    });
    this.view = el("div", { class: "view" }, this.canvas);
    this.legend = el("div", { class: "legend" });
    this.root = el("div", { class: "panel flame" },
      el("div", { class: "controls" }, ...(this.controls || []), this.colourChoice(), this.treeChoice(), this.search, this.matched),
      this.crumbs, this.view, this.read, this.legend);
    host.append(this.root);
  }

  colourChoice() {
    const choice = el("select", { onchange: () => {
      this.isByModule = choice.value === "module";
      this.draw();
    } }, el("option", { value: "kind" }, "by kind of code"), el("option", { value: "module" }, "by module"));
    return el("label", {}, "Colour", choice);
  }

  treeChoice() {
    const choice = el("input", { type: "checkbox", onchange: () => this.setTree(choice.checked ? byAddress : byFunction) });
    return el("label", { title: "A frame for each place that calls, not one for each function" }, choice, "Call addresses");
  }

  setTree(tree) {
    Object.assign(this, { tree, zoom: tree.n, active: -1 });
    this.read.textContent = "";
    this.found = this.words ? matchFrames(tree, this.words) : null;
    this.setValues(this.siteValues, this.unit);
  }

  setValues(siteValues, unit) {
    Object.assign(this, { siteValues, unit, sums: sumTree(this.tree, siteValues) });
    this.sorted = new Map();
    if (this.sums[this.zoom] === 0) this.zoom = this.tree.n;
    this.tellMatched();
    this.tellZoom();
    this.draw();
  }

  setWords(words) {
    this.words = words;
    this.found = words ? matchFrames(this.tree, words) : null;
    this.tellMatched();
    this.draw();
  }

  /* What is in or below a frame that matches, once. */
  tellMatched() {
    if (!this.found) {
      this.matched.textContent = "";
      return;
    }
    const isFound = (i) => this.found[this.tree.frame[i]];
    const inside = spread(this.tree, isFound);
    let sum = 0;
    for (let i = 0; i < this.tree.n; i++)
      if (isFound(i) && (this.tree.parent[i] < 0 || !inside[this.tree.parent[i]])) sum += this.sums[i];
    this.matched.textContent = sum > 0 || this.found.includes(1)
      ? `${formatShare(sum, this.sums[this.tree.n])} matched (${this.unit(sum)})` : "no match";
  }

  /* ---- layout ---- */

  children(node) {
    let all = this.sorted.get(node);
    if (!all) {
      all = this.tree.childList.slice(this.tree.childStart[node], this.tree.childStart[node + 1]).filter((child) => this.sums[child] > 0);
      all.sort((a, b) => this.sums[b] - this.sums[a] || a - b);
      this.sorted.set(node, all);
    }
    return all;
  }

  pathTo(node) {
    const path = [];
    for (let at = node; at >= 0 && at !== this.tree.n; at = this.tree.parent[at]) path.unshift(at);
    return path;
  }

  lay(width) {
    const above = [this.tree.n, ...this.pathTo(this.zoom)];
    this.boxes = above.map((node) => [{ node, x: 0, w: width }]);
    const scale = width / (this.sums[this.zoom] || 1);
    let level = [{ node: this.zoom, x: 0 }];
    while (level.length > 0) {
      const below = [];
      for (const box of level) {
        let x = box.x;
        for (const child of this.children(box.node)) {
          const w = this.sums[child] * scale;
          if (w < LEAST_PIXELS) break;
          below.push({ node: child, x, w });
          x += w;
        }
      }
      if (below.length > 0) this.boxes.push(below);
      level = below;
    }
  }

  drawNow() {
    if (!this.sums) return;
    this.lay(widthOf(this.view) || 600);
    const { context } = beginDrawing(this.canvas, this.boxes.length * BOX + 1);
    const face = getComputedStyle(document.querySelector("code")).fontFamily;
    context.textBaseline = "middle";
    context.font = `11.5px ${face}`;
    this.letter = context.measureText("mmmmmmmmmm").width / 10;
    const zoomDepth = this.pathTo(this.zoom).length;
    this.boxes.forEach((row, depth) => {
      for (const box of row) this.drawBox(context, box, depth, depth < zoomDepth);
    });
    this.drawLegend();
  }

  drawBox(context, box, depth, isAbove) {
    const frame = box.node === this.tree.n ? -1 : this.tree.frame[box.node];
    const isFound = frame >= 0 && this.found && this.found[frame];
    const y = depth * BOX;
    const w = Math.max(box.w - (box.w > 3 ? 1 : 0), 0.5);
    context.globalAlpha = isAbove || (this.found && !isFound) ? 0.5 : 1;
    context.fillStyle = colour(frame < 0 ? "grid" : boxColour(frame, this.isByModule));
    context.fillRect(box.x, y, w, BOX - 1);
    context.globalAlpha = 1;
    if (isFound) {
      context.fillStyle = colour("match");
      context.fillRect(box.x, y + BOX - 4, w, 3);
    }
    if (frame >= 0 && isInlined(frame) && w > 4) drawHatch(context, box.x, y, w);
    if (box.w > 30) this.drawName(context, box, frame, y);
    if (box.node === this.active) {
      context.strokeStyle = colour("pick");
      context.lineWidth = 1.5;
      context.strokeRect(box.x + 0.75, y + 0.75, Math.max(1, w - 1.5), BOX - 2.5);
    }
  }

  drawName(context, box, frame, y) {
    const room = Math.floor((box.w - 8) / this.letter);
    let name = frame < 0 ? this.allText() : this.nameOf(frame);
    if (name.length > room) name = room > 2 ? `${name.slice(0, room - 1)}\u2026` : "";
    context.fillStyle = colour("ink");
    context.fillText(name, box.x + 4, y + BOX / 2 - 0.5);
  }

  /* Where calls are frames of their own, two of a function differ by their line or address. */
  nameOf(frame) {
    return this.tree === byAddress ? `${frameName(frame)} ${frameAddress(frame)}`.trim() : frameName(frame);
  }

  /* A function that is called from several places has no line. */
  placeOf(frame) {
    const calls = callsOf[frame];
    if (this.tree === byAddress || calls < 2) return framePlace(frame);
    return `${strings[frames.file[frame]] || moduleName(frames.module[frame])}, ${calls} call addresses`;
  }

  allText() {
    return `all: ${this.unit(this.sums[this.tree.n])}`;
  }

  drawLegend() {
    const entries = this.isByModule
      ? [...moduleColour].map(([module, name]) => legendEntry(moduleName(module), name)).concat(legendEntry("other modules", "cx"), legendEntry("Python", "python"))
      : kinds.map(([name, title]) => legendEntry(title, name));
    entries.push(legendEntry("what was called", "call"), el("span", {}, "\u2571\u2571 inlined"));
    this.legend.replaceChildren(...entries);
  }

  /* ---- use ---- */

  hit(event) {
    const row = this.boxes[Math.floor(event.offsetY / BOX)] || [];
    const box = row.find((one) => event.offsetX >= one.x && event.offsetX < one.x + one.w);
    return box ? box.node : -1;
  }

  textOf(node) {
    const sum = this.sums[node];
    if (node === this.tree.n) return this.allText();
    const frame = this.tree.frame[node];
    const notes = [this.unit(sum), `${formatShare(sum, this.sums[this.tree.n])} of all`];
    if (this.zoom !== this.tree.n) notes.push(`${formatShare(sum, this.sums[this.zoom])} of what is zoomed to`);
    const place = this.placeOf(frame);
    if (place) notes.push(place);
    if (isInlined(frame)) notes.push("inlined");
    if (frame < frames.n) notes.push(isPython(frame) && frameKind(frame) !== "python" ? `Python, ${kindTitle(frame)}` : kindTitle(frame));
    return `${this.nameOf(frame)} \u2014 ${notes.join(", ")}`;
  }

  point(node, event) {
    if (!event && document.activeElement === this.canvas) return;
    if (node === this.active) return;
    this.active = node;
    this.read.textContent = node < 0 ? "" : this.textOf(node);
    this.draw();
  }

  onClick(event) {
    const node = this.hit(event);
    if (node >= 0) this.zoomTo(node);
  }

  zoomTo(node) {
    this.zoom = node;
    this.active = node;
    this.read.textContent = this.textOf(node);
    this.tellZoom();
    this.draw();
  }

  tellZoom() {
    const whole = el("button", { type: "button", class: "link", onclick: () => this.zoomTo(this.tree.n) }, "All");
    if (this.zoom === this.tree.n) {
      this.crumbs.replaceChildren(el("span", { class: "quiet" }, "Click a frame to zoom to it."));
      return;
    }
    const name = this.nameOf(this.tree.frame[this.zoom]);
    const show = el("button", { type: "button", onclick: () => tell("below", { tree: this.tree, node: this.zoom }) }, "List its sites");
    this.crumbs.replaceChildren(whole, "\u203a", el("span", { class: "mono" }, name), show);
  }

  depthOf(node) {
    return node === this.tree.n ? 0 : this.pathTo(node).length;
  }

  onKey(event) {
    const at = this.active < 0 ? this.zoom : this.active;
    const row = this.boxes[this.depthOf(at)] || [];
    const place = row.findIndex((box) => box.node === at);
    const step = (to) => (to && to.node !== undefined ? to.node : at);
    const moves = {
      ArrowLeft: () => step(row[place - 1]),
      ArrowRight: () => step(row[place + 1]),
      ArrowUp: () => (at === this.tree.n ? at : this.tree.parent[at] < 0 ? this.tree.n : this.tree.parent[at]),
      ArrowDown: () => (this.children(at).length > 0 ? this.children(at)[0] : at),
      Home: () => this.tree.n,
    };
    if (moves[event.key]) this.moveTo(moves[event.key]());
    else if (event.key === "Enter" || event.key === " ") this.zoomTo(at);
    else if (event.key === "Escape" || event.key === "Backspace") this.zoomTo(this.zoom === this.tree.n || this.tree.parent[this.zoom] < 0 ? this.tree.n : this.tree.parent[this.zoom]);
    else return;
    event.preventDefault();
  }

  moveTo(node) {
    this.active = node;
    this.read.textContent = this.textOf(node);
    const y = this.depthOf(node) * BOX;
    if (y < this.view.scrollTop) this.view.scrollTop = y;
    else if (y + BOX > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = y + BOX - this.view.clientHeight;
    this.draw();
  }
}

function drawHatch(context, x, y, w) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, BOX - 1);
  context.clip();
  context.strokeStyle = colour("panel");
  context.globalAlpha = 0.55;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - BOX; at < x + w; at += 7) {
    context.moveTo(at, y + BOX);
    context.lineTo(at + BOX, y);
  }
  context.stroke();
  context.restore();
}

/* One of several; tells which by its name. */
function segments(label, choices, chosen, onchoose) {
  const buttons = choices.map((choice) => el("button", {
    type: "button", title: choice.tip, "aria-pressed": String(choice.name === chosen), "data-name": choice.name,
    onclick: () => {
      for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.name === choice.name);
      onchoose(choice);
    },
  }, choice.title));
  return el("span", { class: "segments", role: "group", "aria-label": label }, ...buttons);
}

function showFlame() {
  const body = bodyOf("flame");
  const first = metrics.find((metric) => metric.name === main.metric) || metrics[0];
  const start = first.name === "live" && main.devices.every((device) => device.liveBytes === 0) && !valuesOf(first).some((v) => v > 0) ? metrics[1] : first;
  let flame = null;
  const choose = (metric) => flame.setValues(valuesOf(metric), metric.unit);
  flame = new Flame(body, { label: "Flame graph", controls: [segments("Measure", metrics, start.name, choose)] });
  choose(start);
  return flame;
}
