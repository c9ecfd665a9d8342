// SPDX-License-Identifier: MIT
// host.js PLUGIN: Node.js and a worker work. A load out of bounds in WebAssembly is a SIGSEGV that V8 turns into an
// exception, and a stack that is full is one that it finds itself.
const { Worker, isMainThread, workerData } = require("worker_threads");

const addon = { exports: {} };
process.dlopen(addon, isMainThread ? process.argv[2] : workerData);

// (memory 1) (func (export "load") (param i32) (result i32) local.get 0 i32.load)
const code = [0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 5, 3, 1, 0, 1, 7, 8, 1, 4, 108, 111, 97, 100, 0, 0,
  10, 9, 1, 7, 0, 32, 0, 40, 2, 0, 11];
const load = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(code))).exports.load;

function caught(f) {
  try {
    return f();
  } catch (error) {
    return error.name;
  }
}

function deeper() {
  return 1 + deeper();
}

function work(calls) {
  const results = [];
  for (let i = 0; i < calls; i++) {
    results.push(addon.exports(), caught(() => load(1 << 20)));
  }
  results.push(load(0), caught(deeper));
  return results.join(" ");
}

if (isMainThread) {
  console.log("node", work(5));
  const worker = new Worker(__filename, { workerData: process.argv[2] });
  worker.on("exit", (status) => {
    console.log("worker", status);
    process.exitCode = 6;
  });
} else {
  console.log("in the worker", work(5));
}
