/* SPDX-License-Identifier: MIT */
/*
 * Call trees: {n, parent, frame, leaf, of, childStart, childList}. A parent's number is lower than
 * its children's, so sums need one walk; node n stands for all. `leaf` has the node of each site,
 * `of` the frame by which the tree names each frame. Two trees hold the same sites: byAddress is the
 * report's, in which each call is a frame of its own; in byFunction each function is one.
 */
let byAddress, byFunction;
let callsOf; /* of each frame that names a function: how many frames it stands for */

function linkTree(tree) {
  const { n, parent } = tree;
  const parentOf = (i) => (parent[i] < 0 ? n : parent[i]);
  tree.childStart = new Uint32Array(n + 2);
  tree.childList = new Uint32Array(n);
  for (let i = 0; i < n; i++) tree.childStart[parentOf(i) + 1]++;
  for (let i = 0; i <= n; i++) tree.childStart[i + 1] += tree.childStart[i];
  const next = tree.childStart.slice();
  for (let i = 0; i < n; i++) tree.childList[next[parentOf(i)]++] = i;
  return tree;
}

/* The first frame of each function stands for all; a frame without a name is only its address. */
function findFunctions() {
  const first = new Map();
  callsOf = new Uint32Array(frames.n + apis.length);
  return Int32Array.from({ length: callsOf.length }, (_, i) => {
    const key = i < frames.n && strings[frames.name[i]] ? `${frames.name[i]} ${frames.file[i]} ${frames.module[i]}` : `=${i}`;
    if (!first.has(key)) first.set(key, i);
    callsOf[first.get(key)]++;
    return first.get(key);
  });
}

function mergeTree(tree, of) {
  const known = new Map();
  const at = new Int32Array(tree.n);
  const parent = [];
  const frame = [];
  for (let i = 0; i < tree.n; i++) {
    const above = tree.parent[i] < 0 ? -1 : at[tree.parent[i]];
    const key = (above + 1) * of.length + of[tree.frame[i]];
    if (!known.has(key)) {
      known.set(key, parent.length);
      parent.push(above);
      frame.push(of[tree.frame[i]]);
    }
    at[i] = known.get(key);
  }
  return { n: parent.length, parent: Int32Array.from(parent), frame: Int32Array.from(frame), leaf: tree.leaf.map((node) => at[node]), of };
}

function makeTrees() {
  const same = Int32Array.from({ length: frames.n + apis.length }, (_, i) => i);
  byAddress = linkTree({ n: nodes.n, parent: nodes.parent, frame: nodes.frame, leaf: leaves, of: same });
  byFunction = linkTree(mergeTree(byAddress, findFunctions()));
}

function sumTree(tree, siteValues) {
  const sums = new Float64Array(tree.n + 1);
  for (let i = 0; i < siteValues.length; i++) sums[tree.leaf[i]] += siteValues[i];
  for (let i = tree.n - 1; i >= 0; i--) sums[tree.parent[i] < 0 ? tree.n : tree.parent[i]] += sums[i];
  return sums;
}

/* Nodes at or below those that `isFound` names. */
function spread(tree, isFound) {
  const inside = new Uint8Array(tree.n);
  for (let i = 0; i < tree.n; i++) {
    const parent = tree.parent[i];
    inside[i] = isFound(i) || (parent >= 0 && inside[parent]) ? 1 : 0;
  }
  return inside;
}

/* Which of the tree's frames have the words in their name or place, or stand for one that has; "/.../" is a regular
 * expression. */
function matchFrames(tree, words) {
  const test = matcherOf(words);
  const found = new Uint8Array(frames.n + apis.length);
  for (let i = 0; i < found.length; i++) if (test(frameName(i)) || test(framePlace(i))) found[tree.of[i]] = 1;
  return found;
}
