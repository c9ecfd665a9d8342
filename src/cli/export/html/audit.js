/* SPDX-License-Identifier: MIT */
/* The account beside that of CUPTI: the report's own record, where there is one. */

function auditText(audit) {
  if (audit.status === "running") return "CUPTI reports when the process ends: no figures yet.";
  if (audit.status !== "done") return `${audit.status === "none" ? "None" : "Incomplete"}: ${audit.why || "not known why"}`;
  const version = audit.cupti_version ? ` (version ${audit.cupti_version})` : "";
  return `CUPTI${version} and cuwarden ${audit.mismatches === 0 ? "agree" : `differ in ${plural(audit.mismatches, "place", "places")}`}.`;
}

function amountText(amount) {
  return amount.count === 0 ? "\u2013" : `${formatCount(amount.count)} (${formatBytes(amount.bytes)})`;
}

function auditRows(kinds) {
  const sides = ["both", "cupti_alone", "cuwarden_alone"];
  const rows = Object.entries(kinds).flatMap(([kind, of]) => Object.entries(of).map(([operation, row]) => [kind, operation, row]));
  return rows.filter(([, , row]) => sides.some((side) => row[side].count > 0)).map(([kind, operation, row]) =>
    el("tr", {}, el("td", {}, kind), el("td", {}, operation), ...sides.map((side) => numberCell(amountText(row[side])))));
}

const unseen = { cupti: "not seen by cuwarden", cuwarden: "not seen by CUPTI", both: "sizes differ" };

function findingRow(one) {
  return el("tr", {}, el("td", {}, unseen[one.seen_by]), el("td", {}, one.kind), el("td", {}, one.operation), numberCell(formatBytes(one.bytes)),
    numberCell(one.cupti_bytes === undefined ? "\u2013" : formatBytes(one.cupti_bytes)), numberCell(formatCount(one.count)),
    el("td", {}, one.address || "\u2013"), el("td", {}, one.source || "\u2013"));
}

function showDifferences(body, audit) {
  if (audit.mismatches === 0) return;
  const title = audit.mismatches > audit.findings.length ? `Differences, the first ${audit.findings.length} of ${formatCount(audit.mismatches)}` : "Differences";
  body.append(el("h3", {}, title), el("div", { class: "panel account" }, plainTable(
    ["Difference", "Kind", "Operation", "Bytes>", "By CUPTI>", "Times>", "Address", "Requested by"], audit.findings.map(findingRow))));
}

function showLosses(body, audit) {
  if (audit.dropped > 0)
    body.append(el("p", { class: "note" }, `CUPTI dropped ${plural(audit.dropped, "record", "records")}, which may explain what it did not see.`));
  if (audit.not_kept > 0) body.append(el("p", { class: "note" }, `Incomplete: out of memory for ${plural(audit.not_kept, "record", "records")}.`));
}

function showVariables(body, audit) {
  if (audit.static.count === 0) return;
  const rest = audit.static.count - audit.variables.length;
  body.append(el("h3", {}, "Static memory of modules"), el("p", { class: "soft" },
    `${formatBytes(audit.static.bytes)} in ${plural(audit.static.count, "variable", "variables")}, which no call allocates${rest > 0 ? `; ${formatCount(rest)} of them are not shown` : ""}.`));
  if (audit.variables.length > 0)
    body.append(el("div", { class: "panel account" }, plainTable(["Variable", "Declared", "Bytes>"], audit.variables.map((one) =>
      el("tr", {}, el("td", {}, one.name || "?"), el("td", {}, one.managed ? "__managed__" : "__device__"), numberCell(formatBytes(one.bytes)))))));
}

function showAudit() {
  const { audit } = whole;
  if (!audit) return;
  for (const element of document.querySelectorAll("#audit, nav a[href='#audit']")) element.hidden = false;
  const body = bodyOf("audit");
  body.append(el("p", {}, auditText(audit)));
  if (audit.status !== "done") return;
  const rows = auditRows(audit.kinds);
  if (rows.length > 0)
    body.append(el("div", { class: "panel account" }, plainTable(["Kind", "Operation", "By both>", "CUPTI alone>", "cuwarden alone>"], rows)));
  showDifferences(body, audit);
  showLosses(body, audit);
  showVariables(body, audit);
}
