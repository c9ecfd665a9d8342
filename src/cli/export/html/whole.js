/* SPDX-License-Identifier: MIT */
/* Pressure, old blocks, and the accounts of out of memory. */

const ACCOUNTS = 20; /* shown */

function numberCell(text) {
  return el("td", { class: "num" }, text);
}

/* ---- pressure ---- */

function levelTimes(ns) {
  const all = ns.reduce((a, b) => a + b, 0);
  return ns.map((time, i) => (time > 0 ? `${levels[i]} ${formatShare(time, all)}` : "")).filter((text) => text).join(", ");
}

function pressureRow(one) {
  const device = main.devices.find((each) => each.ordinal === one.device);
  return el("tr", {}, el("td", {}, device.isHost ? "host" : String(one.device)), el("td", {}, badge(device.isHost ? "" : device.level)),
    numberCell(device.limit ? formatBytes(device.limit) : "\u2013"), numberCell(device.minFree ? formatBytes(device.minFree) : "\u2013"),
    numberCell(formatBytes(one.held)), numberCell(formatBytes(one.peakHeld)), numberCell(one.use > 0 ? formatShare(one.use, 1) : "\u2013"),
    numberCell(formatCount(one.refused)), numberCell(levelTimes(one.ns)));
}

function showPressure(body) {
  if (whole.pressure.length === 0) return;
  body.append(el("h3", {}, "Pressure"), el("div", { class: "panel account" }, plainTable(
    ["Device", "Level", "Limit>", "Min free>", "Held>", "Peak held>", "Highest use>", "Refused>", "Time at each level>"], whole.pressure.map(pressureRow))));
  const tried = whole.rungs.filter((rung) => rung[1] > 0);
  if (tried.length > 0)
    body.append(el("div", { class: "panel account" }, plainTable(["When memory had run out, in this order", "Tried>", "Helped>", "Given back>"],
      tried.map(([label, times, helped, bytes]) => el("tr", {}, el("td", {}, label), numberCell(formatCount(times)), numberCell(formatCount(helped)),
        numberCell(bytes ? formatBytes(bytes) : "\u2013"))))));
}

/* ---- old blocks ---- */

function showOld(body) {
  if (whole.old.length === 0) return;
  const row = (k) => whole.old[k][0];
  body.append(el("h3", {}, `Blocks that are live for ${formatTime(whole.oldNs)} and more`));
  new Table(body, {
    name: "old", isTall: needsLines(), label: "Old blocks", n: whole.old.length, sort: 0, most: 300, least: "40rem", onpick: (k) => goToSite(row(k)),
    columns: [
      { title: "Bytes", number: true, width: "7rem", value: (k) => whole.old[k][2], text: (k) => formatBytes(whole.old[k][2]) },
      { title: "Blocks", minor: true, number: true, width: "6rem", value: (k) => whole.old[k][1], text: (k) => formatCount(whole.old[k][1]) },
      { title: "Oldest", number: true, width: "7rem", value: (k) => whole.old[k][3], text: (k) => formatTime(whole.old[k][3]) },
      { title: "Site", wide: true, width: "minmax(12rem, 1fr)", value: (k) => siteText(row(k)), cell: (k) => siteLink(row(k)) },
    ],
  });
}

/* ---- accounts ---- */

function shareRow(label, bytes, all) {
  return el("tr", {}, numberCell(formatBytes(bytes)), numberCell(formatShare(bytes, all)), el("td", {}, label));
}

function holderRow([row, api, count, bytes], account) {
  return shareRow(el("span", {}, `${plural(count, "block", "blocks")} of ${api} `, siteLink(row, true)), bytes, account.live);
}

function accountFacts(account) {
  const facts = [`why: ${account.cause}`];
  if ((account.total || account.limit) && (!account.fragmented || account.fits < account.bytes)) facts.push(account.fits ? `largest that fits: ${formatBytes(account.fits)}` : "nothing fits");
  if (account.limit) facts.push(`the limit was ${formatBytes(account.limit)}`);
  if (account.minFree) facts.push(`${formatBytes(account.minFree)} stay free`);
  if (account.fragmented) facts.push(`${formatBytes(account.free)} were free, but not in one piece`);
  return facts.join("; ");
}

function accountPanel(account) {
  const where = account.device === 64 ? "host" : `device ${account.device}`;
  const holders = account.holders.map((holder) => holderRow(holder, account));
  if (account.rest[0] > 0) holders.push(shareRow(`${plural(account.rest[0], "block", "blocks")} at all other sites`, account.rest[1], account.live));
  return el("div", { class: "panel account" },
    el("p", {}, el("b", {}, `${formatTime(account.t)}, ${where}: ${formatBytes(account.bytes)} refused${account.code === 2 ? "" : ` (error ${account.code})`} `), siteLink(account.site, true)),
    el("p", { class: "soft" }, accountFacts(account)),
    el("div", { class: "split" },
      account.parts.length > 0 ? plainTable(["Bytes>", "Share>", "Where the memory was"], account.parts.map(([label, bytes]) => shareRow(label, bytes, account.total))) : el("div", {}),
      holders.length > 0 ? plainTable(["Bytes>", "Share>", "What was in use"], holders) : el("div", {})));
}

function showAccounts(body) {
  if (whole.ooms.length === 0) return;
  body.append(el("h3", {}, whole.ooms.length > ACCOUNTS ? `Out of memory, the first ${ACCOUNTS} of ${formatCount(whole.ooms.length)} accounts` : "Out of memory"),
    ...whole.ooms.slice(0, ACCOUNTS).map(accountPanel));
}
