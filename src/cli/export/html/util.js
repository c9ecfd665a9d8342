/* SPDX-License-Identifier: MIT */
/* Elements, numbers for people, and who is told when something is picked. Names come from the
   program and are hostile: text reaches the page as text nodes only. */

function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function bodyOf(section) {
  const body = document.querySelector(`#${section} .body`);
  body.replaceChildren();
  return body;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

function formatBytes(bytes) {
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1023.95 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || Number.isInteger(value) ? 0 : value < 9.995 ? 2 : 1;
  return `${bytes < 0 ? "\u2212" : ""}${value.toFixed(digits)}\u00a0${units[unit]}`;
}

const grouped = new Intl.NumberFormat("en-US");

function formatCount(count) {
  return grouped.format(count);
}

function plural(count, one, many) {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

function formatTime(ns) {
  const seconds = ns / 1e9;
  if (ns === 0) return "0\u00a0s";
  if ( seconds < 1e-3) return `${(ns / 1e3).toFixed(1)}\u00a0\u00b5s`;
  if (seconds < 1) return `${(ns / 1e6).toFixed(seconds < 0.01 ? 2 : 1)}\u00a0ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 3 : 2)}\u00a0s`;
  const whole = Math.floor(seconds);
  const two = (value) => String(value).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}.${Math.floor((seconds % 1) * 10)}`;
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

function formatShare(part, whole) {
  if (!whole) return "\u2013";
  const percent = (part / whole) * 100;
  return `${percent.toFixed(percent > 0 && percent < 10 ? 1 : 0)}\u00a0%`;
}

function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

function badge(text, kind) {
  return text ? el("span", { class: `badge ${(kind || text).replace(/[^a-z-]/g, "")}` }, text) : "";
}

/* ---- who listens ---- */

const listeners = new Map();

function listen(topic, fn) {
  if (!listeners.has(topic)) listeners.set(topic, []);
  listeners.get(topic).push(fn);
}

function tell(topic, value) {
  for (const fn of listeners.get(topic) || []) fn(value);
}

/* Many changes before the next frame make one drawing. */
function drawSoon(fn) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      fn();
    });
  };
}

/* ---- colours and canvases ---- */

let colours = null;

function colour(name) {
  if (!colours) colours = getComputedStyle(document.documentElement);
  return colours.getPropertyValue(`--${name}`).trim();
}

const PAPER = 680; /* pixels between the margins of a page, which is not laid out yet when its drawings are made */
let isPrinting = false;

function widthOf(element) {
  return isPrinting ? PAPER : element.clientWidth;
}

/* Clears it in device pixels; the context then counts in CSS pixels. Browsers draw nothing at all
   on a canvas beyond some 16 000 pixels. */
function beginDrawing(canvas, height) {
  const width = widthOf(canvas) || canvas.parentElement.clientWidth || 600;
  const scale = Math.min(isPrinting ? 2 : window.devicePixelRatio || 1, 16000 / Math.max(width, height));
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

function drawSpark(canvas, values, height) {
  const { context, width } = beginDrawing(canvas, height);
  const most = values.reduce((a, b) => Math.max(a, b), 1);
  const x = (i) => 1 + (i / Math.max(1, values.length - 1)) * (width - 2);
  const y = (value) => height - 2 - (value / most) * (height - 4);
  context.beginPath();
  context.moveTo(x(0), height);
  values.forEach((value, i) => context.lineTo(x(i), y(value)));
  context.lineTo(x(values.length - 1), height);
  context.fillStyle = colour("rest");
  context.fill();
  context.beginPath();
  values.forEach((value, i) => (i ? context.lineTo(x(i), y(value)) : context.moveTo(x(i), y(value))));
  context.strokeStyle = colour("live");
  context.lineWidth = 1.5;
  context.stroke();
}

/* A drawing that follows theme and width. */
function spark(values, height, label) {
  const canvas = el("canvas", { class: "spark", role: "img", "aria-label": label });
  requestAnimationFrame(() => canvas.isConnected && drawSpark(canvas, values, height));
  return canvas;
}
