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
  const common = commonUnknown(rows);
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
    h("tbody", {}, sorted.map((row) => drawRow(row, chosen, choose, common))),
  );
  const unfold = () => {
    unfolded = true;
    again();
  };
  fill(place, common && h("p", { class: "note small", id: "unknown" }, `Unknown words: ${common}. A model that knows others says so.`), table, !unfolded && hidden > 0 && h("button", { type: "button", class: "more-models", onclick: unfold }, `Show ${hidden} more`));
  if (held) document.getElementById(held)?.focus();
}

function drawRow(row, chosen, choose, common) {
  const isChosen = row.model === chosen.model && row.task === chosen.task;
  const name = h(
    "th",
    { scope: "row" },
    h("button", { type: "button", class: "link", id: `model-${row.name}`, title: row.title, "aria-pressed": String(isChosen), onclick: () => choose(row) }, row.name),
    notes(row, common).map((note) => h("span", { class: "soft" }, note)),
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

/** The unknown words that most models have in common, or "" where most know all words. */
function commonUnknown(rows) {
  const answered = rows.filter(({ result }) => result !== null);
  const counts = new Map();
  for (const row of answered) counts.set(unknownIn(row), (counts.get(unknownIn(row)) ?? 0) + 1);
  const [words, count] = [...counts].reduce((best, found) => (found[1] > best[1] ? found : best), ["", 0]);
  return answered.length > 2 && 2 * count > answered.length ? words : "";
}

/** What was cut, and which words were unknown, unless that is said for all models already. */
function notes(row, common) {
  if (row.result === null) return [];
  const { truncated, tokens } = row.result;
  const found = ["first", "second"].flatMap((which, i) => (truncated[i] ? [`${which} cut after ${tokens[i]} tokens`] : []));
  const words = unknownIn(row);
  if (words !== common) found.push(words === "" ? "knows all words" : `unknown: ${words}`);
  return found;
}

function unknownIn({ result, unknown }) {
  const sides = ["first", "second"].flatMap((which, i) => {
    if (result.unknown[i] === 0) return [];
    return unknown[i].length > 0 ? unknown[i] : [`${Math.round(100 * result.unknown[i])} % of the ${which}`];
  });
  return [...new Set(sides)].join(", ");
}
