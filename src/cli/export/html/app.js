/* SPDX-License-Identifier: MIT */
/* Theme, keys, and what is drawn when: the overview at once, the rest after the page was read. */

/* ---- theme: the system's until the reader says otherwise ---- */

const dark = matchMedia("(prefers-color-scheme: dark)");
let theme = null;

function applyTheme(name) {
  document.documentElement.dataset.theme = name;
  colours = null;
  tell("theme", name);
}

function systemTheme() {
  return dark.matches ? "dark" : "light";
}

function switchTheme() {
  theme = (theme || systemTheme()) === "dark" ? "light" : "dark";
  applyTheme(theme);
}

/* ---- keys ---- */

const keys = [
  ["/", "search the flame graph"],
  ["f", "filter the sites"],
  ["g", "to the table of sites"],
  ["m", "to the moment"],
  ["t", "switch between light and dark"],
  ["?", "show these keys"],
  ["\u2190 \u2192", "on a timeline: the sample before and after"],
  ["\u2190 \u2191 \u2192 \u2193", "in a flame graph: beside, out, beside, in"],
  ["Enter", "zoom to the frame; open the row"],
  ["Esc", "zoom out; close the row"],
  ["\u2191 \u2193 PgUp PgDn", "in a table: move"],
];

function showKeys() {
  const dialog = document.getElementById("keys");
  if (dialog.open) {
    dialog.close();
    return;
  }
  dialog.replaceChildren(el("h2", {}, "Keys"),
    el("dl", {}, ...keys.flatMap(([key, text]) => [el("dt", {}, ...key.split(" ").map((one) => el("kbd", {}, one))), el("dd", {}, text)])),
    el("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  dialog.showModal();
}

function focusOn(selector, section) {
  const element = document.querySelector(selector);
  if (!element) return;
  document.getElementById(section).scrollIntoView();
  element.focus({ preventScroll: true });
}

const actions = {
  "/": () => focusOn("#flame input[type=search]", "flame"),
  f: () => focusOn("#site-filter", "sites"),
  g: () => focusOn("#sites .rows", "sites"),
  m: () => focusOn("#timeline canvas", "timeline"),
  t: switchTheme,
  "?": showKeys,
};

function onPageKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

/* ---- paper is white ---- */

function setPrinting(isOn) {
  while (stepsLeft.length > 0) takeStep();
  isPrinting = isOn;
  applyTheme(isOn ? "light" : theme || systemTheme());
  tell("print", isOn);
}

/* ---- the order of things ---- */

let stepsLeft = [];

function takeStep() {
  const step = stepsLeft.shift();
  if (step) step();
  if (stepsLeft.length === 0) document.documentElement.dataset.ready = "true";
}

/* Lets the browser show what there is, then goes on; a page that nobody sees gets no frames. */
function later(fn) {
  let isDone = false;
  const once = () => {
    if (isDone) return;
    isDone = true;
    fn();
  };
  requestAnimationFrame(() => setTimeout(once, 0));
  setTimeout(once, 250);
}

function inTurn(steps) {
  stepsLeft = steps;
  const next = () => {
    takeStep();
    if (stepsLeft.length > 0) later(next);
  };
  later(next);
}

applyTheme(systemTheme());
dark.addEventListener("change", () => theme || applyTheme(systemTheme()));
document.getElementById("theme").addEventListener("click", switchTheme);
document.getElementById("help").addEventListener("click", showKeys);
document.addEventListener("keydown", onPageKey);
window.addEventListener("beforeprint", () => setPrinting(true));
window.addEventListener("afterprint", () => setPrinting(false));
showOverview();
showTimeline();
document.addEventListener("DOMContentLoaded", () => inTurn([
  () => {
    readSites();
    makeTrees();
    rankModules();
  },
  showSites,
  showFlame,
  showPeak,
  () => {
    showMoment();
    showGrowth();
    showPool();
    showAudit();
  },
  () => {
    readEvents();
    showEvents();
    tell("events");
  },
]));
