/* SPDX-License-Identifier: MIT */
/*
 * A table that draws only the rows in view, however many there are; one row may be open and show
 * more below it. Columns: {title, width, text(i) or cell(i), value(i) to sort by, number, tip, minor, wide};
 * where there is little room minor ones are left out, and wide ones stand below the others. Browsers limit
 * the height of an element: where the rows would be higher, the scroll bar is shortened.
 */
const ROW = 28;
const ROW_NARROW = 76; /* with a wide cell */
const ROW_STACKED = 58; /* where a site needs more than a line */
const ROW_PRINTED = 50;
const narrow = matchMedia("screen and (max-width: 1000px)");
const SPACE_MOST = 8e6;
const PRINTED = 80; /* rows on paper */

function classOf(column) {
  return `${column.number ? "num" : ""}${column.minor ? " minor" : ""}${column.wide ? " wide" : ""}`;
}

class Table {
  constructor(host, options) {
    Object.assign(this, { most: 560, least: "44rem", open: -1, openHeight: 0, active: -1, printing: false, row: ROW }, options);
    this.order = Uint32Array.from({ length: this.n }, (_, i) => i);
    this.filter = null;
    this.build(host);
    this.setSort(this.sort || 0, this.down !== false);
  }

  build(host) {
    this.space = el("div", { class: "space", role: "rowgroup" });
    this.rows = el("div", {
      class: "rows", tabindex: "0", role: "grid", "aria-label": this.label, "aria-rowcount": this.n,
      onscroll: () => this.draw(), onkeydown: (event) => this.onKey(event),
    }, this.space);
    this.titles = el("div", { class: "row titles", role: "row" }, ...this.columns.map((column, i) => this.title(column, i)));
    const inner = el("div", { class: "inner" }, this.titles, this.rows);
    this.root = el("div", { class: "table" }, el("div", { class: "across" }, inner));
    const widths = (columns) => columns.map((column) => column.width).join(" ");
    this.root.style.setProperty("--columns", widths(this.columns));
    const below = this.columns.some((column) => column.wide) ? " 1fr" : ""; /* a wide cell spans all */
    this.root.style.setProperty("--few", widths(this.columns.filter((column) => !column.minor && !column.wide)) + below);
    this.root.style.setProperty("--paper", widths(this.columns.filter((column) => !column.minor)));
    this.root.style.setProperty("--least", this.least);
    host.append(this.root);
    this.draw = drawSoon(() => this.drawNow());
    new ResizeObserver(() => this.redraw()).observe(this.rows);
    listen("theme", () => this.redraw());
    listen("print", (isOn) => {
      this.printing = isOn;
      this.drawNow();
    });
  }

  title(column, i) {
    const button = column.value
      ? el("button", { type: "button", title: column.tip, onclick: () => this.setSort(i, this.sort === i ? !this.down : column.number === true) }, column.title)
      : el("button", { type: "button", disabled: true }, column.title);
    return el("div", { class: classOf(column), role: "columnheader" }, button);
  }

  setSort(i, down) {
    this.sort = i;
    this.down = down;
    [...this.titles.children].forEach((title, k) =>
      title.setAttribute("aria-sort", k !== i ? "none" : down ? "descending" : "ascending"));
    this.arrange();
  }

  setFilter(filter) {
    this.filter = filter;
    this.arrange();
  }

  /* Which rows, in which order; equal ones stay as they came. */
  arrange() {
    const kept = [];
    for (let i = 0; i < this.n; i++) if (!this.filter || this.filter(i)) kept.push(i);
    const value = this.columns[this.sort].value;
    if (value) {
      const keys = new Array(this.n);
      for (const i of kept) keys[i] = value(i);
      const sign = this.down ? -1 : 1;
      kept.sort((a, b) => (keys[a] < keys[b] ? -sign : keys[a] > keys[b] ? sign : a - b));
    }
    this.order = Uint32Array.from(kept);
    this.rows.setAttribute("aria-rowcount", this.order.length);
    this.place = null;
    this.rows.scrollTop = 0;
    this.draw();
    if (this.onarrange) this.onarrange(this.order);
  }

  placeOf(i) {
    if (!this.place) {
      this.place = new Map();
      this.order.forEach((row, at) => this.place.set(row, at));
    }
    return this.place.has(i) ? this.place.get(i) : -1;
  }

  /* ---- where rows are ---- */

  height() {
    return this.order.length * this.row + (this.openAt() >= 0 ? this.openHeight : 0);
  }

  openAt() {
    return this.open < 0 ? -1 : this.placeOf(this.open);
  }

  topOf(at, openAt) {
    return at * this.row + (openAt >= 0 && at > openAt ? this.openHeight : 0);
  }

  /* What is at the top of the view, in the height that the rows would need. */
  offset() {
    const room = Math.max(1, Math.min(this.height(), SPACE_MOST) - this.rows.clientHeight);
    return this.height() <= SPACE_MOST ? this.rows.scrollTop
      : (this.rows.scrollTop / room) * (this.height() - this.rows.clientHeight);
  }

  scrollToOffset(offset) {
    const height = this.height();
    const room = Math.min(height, SPACE_MOST) - this.rows.clientHeight;
    this.rows.scrollTop = height <= SPACE_MOST ? offset : (offset / (height - this.rows.clientHeight)) * room;
  }

  drawNow() {
    const isStacked = this.columns.some((column) => column.wide) && (this.printing || narrow.matches || this.isTall === true);
    this.row = this.printing ? ROW_PRINTED : !isStacked ? ROW : narrow.matches ? ROW_NARROW : ROW_STACKED;
    this.root.classList.toggle("stacked", isStacked);
    this.root.style.setProperty("--row", `${this.row}px`);
    const height = this.height();
    const count = this.printing ? Math.min(PRINTED, this.order.length) : this.order.length;
    this.space.style.height = `${this.printing ? count * this.row : Math.min(height, SPACE_MOST)}px`;
    this.rows.style.height = this.printing ? "auto" : `${Math.min(height, this.most) || this.row * 2}px`;
    const openAt = this.printing ? -1 : this.openAt();
    const offset = this.printing ? 0 : this.offset();
    const shift = this.printing ? 0 : this.rows.scrollTop - offset;
    const view = this.printing ? count * this.row : this.rows.clientHeight;
    const first = Math.max(0, Math.floor((offset - (openAt >= 0 ? this.openHeight : 0)) / this.row) - 2);
    const drawn = [];
    for (let at = first; at < count; at++) {
      const top = this.topOf(at, openAt);
      if (top > offset + view) break;
      if (top + this.row + (at === openAt ? this.openHeight : 0) < offset) continue;
      drawn.push(this.rowAt(at, top + shift));
      if (at === openAt) drawn.push(this.detailAt(top + shift + this.row));
    }
    if (count < this.order.length) drawn.push(this.note(count));
    if (this.order.length === 0) drawn.push(el("div", { class: "empty" }, this.none || "Nothing to show."));
    this.space.replaceChildren(...drawn);
  }

  note(count) {
    return el("div", { class: "empty" }, `The first ${count} of ${formatCount(this.order.length)}.`);
  }

  rowAt(at, top) {
    const i = this.order[at];
    const isOpen = this.open === i;
    const row = el("div", {
      class: `row${this.active === i ? " active" : ""}`, role: "row", id: `${this.name}-${i}`, "aria-rowindex": at + 1,
      "aria-selected": this.active === i, "aria-expanded": this.detail ? String(isOpen) : undefined,
      onclick: () => this.onClick(i),
    }, ...this.columns.map((column) => this.cell(column, i)));
    row.style.top = `${top}px`;
    return row;
  }

  cell(column, i) {
    const content = column.cell ? column.cell(i) : column.text(i);
    return el("div", {
      class: `${classOf(column)} ${column.class || ""}`, role: "gridcell",
      title: typeof content === "string" ? content : undefined,
    }, content);
  }

  detailAt(top) {
    if (this.detailOf !== this.open) {
      this.detailOf = this.open;
      this.detailElement = el("div", { class: "detail" }, this.detail(this.open));
    }
    this.detailElement.style.top = `${top}px`;
    this.detailElement.style.height = `${this.openHeight}px`;
    return this.detailElement;
  }

  /* ---- use ---- */

  onClick(i) {
    this.active = i;
    this.setActive();
    this.act(i);
  }

  act(i) {
    if (this.detail) this.toggle(i);
    else if (this.onpick) this.onpick(i);
    this.draw();
  }

  /* Other colours, or another width: what is open has another height. */
  redraw() {
    this.measure();
    this.draw();
  }

  toggle(i) {
    this.open = this.open === i ? -1 : i;
    this.measure();
  }

  measure() {
    this.detailOf = -1;
    if (this.open < 0) return;
    const probe = el("div", { class: "detail" }, this.detail(this.open));
    probe.style.visibility = "hidden";
    this.space.append(probe);
    this.openHeight = Math.min(460, probe.offsetHeight);
    probe.remove();
  }

  setActive() {
    if (this.active >= 0) this.rows.setAttribute("aria-activedescendant", `${this.name}-${this.active}`);
  }

  /* Makes the row the active one, in view. */
  show(i, isOpen) {
    const at = this.placeOf(i);
    if (at < 0) return false;
    this.active = i;
    this.setActive();
    if (isOpen && this.open !== i) this.toggle(i);
    this.drawNow();
    const top = this.topOf(at, this.openAt());
    const offset = this.offset();
    if (top < offset || isOpen) this.scrollToOffset(top);
    else if (top + this.row > offset + this.rows.clientHeight) this.scrollToOffset(top + this.row - this.rows.clientHeight);
    this.drawNow();
    return true;
  }

  onKey(event) {
    if (event.target !== this.rows) return;
    const page = Math.max(1, Math.floor(this.rows.clientHeight / this.row) - 1);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    const at = this.active < 0 ? -1 : this.placeOf(this.active);
    if (by !== undefined && this.order.length > 0) {
      this.show(this.order[Math.max(0, Math.min(this.order.length - 1, at + by))], false);
    } else if ((event.key === "Enter" || event.key === " ") && at >= 0) {
      this.act(this.active);
    } else if (event.key === "Escape" && this.open >= 0) {
      this.open = -1;
      this.draw();
    } else {
      return;
    }
    event.preventDefault();
  }
}
