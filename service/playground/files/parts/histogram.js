/** How scores are spread: a table of ten bars. */

import { h } from "./dom.js";

const BINS = 10;

export function histogram(scores) {
  const counts = new Array(BINS).fill(0);
  for (const score of scores) counts[Math.min(BINS - 1, Math.floor(score * BINS))] += 1;
  const most = Math.max(1, ...counts);
  const title = (i) => (i / BINS).toFixed(1);
  return h(
    "table",
    { class: "histogram-table" },
    h("caption", { class: "hint" }, "How many pairs have scores from 0 to 1"),
    h("tbody", {}, h("tr", {}, counts.map((count, i) => h("td", { title: `${title(i)} to ${title(i + 1)}: ${count}` }, count > 0 && String(count), h("i", { w: (100 * count) / most }))))),
    h("tfoot", {}, h("tr", {}, counts.map((_, i) => h("th", { scope: "col" }, title(i))))),
  );
}
