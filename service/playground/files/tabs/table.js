/** The table of all models' answers to one pair. */

import { line } from "../parts/alerts.js";
import { bar } from "../parts/bars.js";
import { fill, h } from "../parts/dom.js";
import { meaning } from "../parts/meaning.js";

const FIRST = 9; // rows that a narrow screen shows; in results.css too
const ORDERS = { listed: "none", score: "descending" };
let order = "listed";
let unfolded = false;

/** Draw `rows` ({name, title, result, scale, error, unknown}); a click on a name calls `choose(row)`. */
export function drawTable(place, rows, chosen, choose) {
  const again = () => drawTable(place, rows, chosen, choose);
  const held = place.contains(document.activeElement) ? document.activeElement.id : "";
  const byScore = () => {
    order = order === "listed" ? "score" : "listed";
    again();
  };
  const sorted = order === "listed" ? rows : [...rows].sort((a, b) => (b.result?.score ?? -1) - (a.result?.score ?? -1));
  const hidden = rows.length - FIRST;
  const table = h(
    "table",
    { class: unfolded ? "" : "folded", id: "models-table" },
    h("caption", { class: "visually-hidden" }, "The score of each model, its rating and what it says"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Model"),
        h("th", { scope: "col", "aria-sort": ORDERS[order] }, h("button", { type: "button", class: "link", id: "sort", onclick: byScore }, order === "listed" ? "Score" : "Score \u2193")),
        h("th", { scope: "col" }, "Rating"),
        h("th", { scope: "col", class: "narrow-gone" }, "In words"),
      ),
    ),
    h("tbody", {}, sorted.map((row) => drawRow(row, chosen, choose))),
  );
  const unfold = () => {
    unfolded = true;
    again();
  };
  fill(place, table, !unfolded && hidden > 0 && h("button", { type: "button", class: "more-models", onclick: unfold }, `Show ${hidden} more`));
  if (held) document.getElementById(held)?.focus();
}

function drawRow(row, chosen, choose) {
  const isChosen = row.model === chosen.model && row.task === chosen.task;
  const name = h(
    "th",
    { scope: "row" },
    h("button", { type: "button", class: "link", id: `model-${row.name}`, title: row.title, "aria-pressed": String(isChosen), onclick: () => choose(row) }, row.name),
    notes(row).map((note) => h("span", { class: "soft" }, note)),
  );
  const { result } = row;
  if (row.error !== null) return h("tr", { class: isChosen ? "chosen" : "" }, name, h("td", { class: "bad", colspan: "3" }, line(row.error)));
  if (result === null) return h("tr", { class: isChosen ? "chosen" : "" }, name, h("td", { class: "soft", colspan: "3" }, "\u2026"));
  const rating = result.rating_scale ? [result.rating.toFixed(2), h("span", { class: "soft" }, ` of ${result.rating_scale.join("\u2013")}`)] : "\u2013";
  return h(
    "tr",
    { class: isChosen ? "chosen" : "" },
    name,
    h("td", {}, bar(result.score)),
    h("td", { class: "number" }, rating),
    h("td", { class: "narrow-gone" }, meaning(result, row.scale).short),
  );
}

/** What was cut, and which words were unknown. */
function notes({ result, unknown }) {
  if (result === null) return [];
  return [0, 1].flatMap((side) => {
    const which = side === 0 ? "first" : "second";
    const found = [];
    if (result.truncated[side]) found.push(`${which} cut after ${result.tokens[side]} tokens`);
    if (result.unknown[side] > 0) {
      const words = unknown[side].length > 0 ? unknown[side].join(", ") : `${Math.round(100 * result.unknown[side])} % of the ${which}`;
      found.push(`unknown: ${words}`);
    }
    return found;
  });
}
