/** A table whose cells are coloured by their numbers; arrow keys move through it, hover and focus show the value. */

import { largest, signed } from "./bars.js";
import { h } from "./dom.js";

const MAX_WITH_NUMBERS = 16; // columns; in wider tables a cell has its colour only
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/**
 * @param {object} what
 * @param {string} what.title
 * @param {string} what.caption what the numbers are
 * @param {string[]} what.rows tokens of the first sentence
 * @param {string[]} what.columns tokens of the second
 * @param {number[][]} what.values [rows][columns]
 * @param {[number, number]|undefined} what.range lowest and highest there can be
 * @param {boolean[][]|null} what.picked cells to frame
 * @param {{a: number[], b: number[], all: number}|null} what.sums of rows, of columns and of all
 * @param {(value: number) => string} what.inWords what a value says, for the line below the table
 */
export function heat({ title, caption, rows, columns, values, range, picked = null, sums = null, inWords = () => "" }) {
  const most = range && range[0] < 0 ? Math.max(-range[0], range[1]) : largest(values.flat());
  const reading = h("p", { class: "reading soft", "aria-hidden": "true" }, "Point at a cell for its value; arrow keys move through the table.");
  const cells = values.map((row, i) => row.map((value, j) => cell(value, i, j)));

  function cell(value, i, j) {
    const chosen = picked?.[i][j] ?? false;
    const label = `${rows[i]} and ${columns[j]}: ${signed(value)}${chosen ? ", matched" : ""}`;
    return h(
      "td",
      {
        class: [value < 0 ? "less" : "", chosen ? "picked" : ""].join(" ").trim(),
        tabindex: i + j === 0 ? "0" : "-1",
        "aria-label": label,
        w: most > 0 ? (100 * Math.abs(value)) / most : 0,
        "data-place": `${i},${j}`,
      },
      h("b", {}, short(value), chosen ? " \u25cf" : ""),
    );
  }

  function read(target) {
    const place = target.closest("[data-place]")?.dataset.place;
    if (place === undefined) return;
    const [i, j] = place.split(",").map(Number);
    const value = values[i][j];
    const extra = [picked?.[i][j] ? "matched one to one" : "", inWords(value)].filter(Boolean).join(", ");
    reading.replaceChildren(h("strong", {}, rows[i], " \u00d7 ", columns[j]), ` ${signed(value)}${extra ? ` \u2013 ${extra}` : ""}`);
  }

  function move(event) {
    const step = STEPS[event.key];
    const place = event.target.closest("[data-place]")?.dataset.place;
    if (step === undefined || place === undefined) return;
    event.preventDefault();
    const [i, j] = place.split(",").map(Number);
    const next = cells[i + step[0]]?.[j + step[1]];
    if (next === undefined) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  const head = h("tr", {}, h("td"), columns.map((token) => h("th", { scope: "col" }, token)), sums && h("th", { scope: "col", class: "sum" }, "sum"));
  const body = cells.map((row, i) =>
    h("tr", {}, h("th", { scope: "row" }, rows[i]), row, sums && h("td", { class: "sum" }, short(sums.a[i]))),
  );
  const foot = sums && h("tr", {}, h("th", { scope: "row", class: "sum" }, "sum"), sums.b.map((sum) => h("td", { class: "sum" }, short(sum))), h("td", { class: "sum" }, short(sums.all)));
  const table = h(
    "table",
    {
      role: "grid",
      "aria-label": title,
      onkeydown: move,
      onfocusin: (event) => read(event.target),
      onmouseover: (event) => read(event.target),
    },
    h("thead", {}, head),
    h("tbody", {}, body, foot),
  );
  const hasLess = values.flat().some((value) => value < 0) || (range?.[0] ?? 0) < 0;
  const legend = h(
    "p",
    { class: "legend" },
    h("span", {}, hasLess ? signed(-most) : "0"),
    h("i", { class: hasLess ? "around0" : "", "aria-hidden": "true" }),
    h("span", {}, hasLess ? signed(most) : most.toFixed(2)),
    picked && h("span", {}, "\u25cf and a frame: matched one to one"),
  );
  return h("div", {}, h("h3", {}, title), h("p", { class: "hint" }, caption), h("div", { class: columns.length > MAX_WITH_NUMBERS ? "heat dense scroll" : "heat scroll" }, table), reading, legend);
}

/** Two digits, without the 0 before the point. */
function short(value) {
  const text = Math.abs(value).toFixed(2).replace(/^0\./, ".");
  return value < 0 && Number(text) !== 0 ? `\u2212${text}` : text;
}
