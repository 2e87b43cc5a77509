/** Numbers with their bars, for cells of tables. */

import { h } from "./dom.js";

/** A score 0..1. */
export const two = (value) => value.toFixed(2);

/** A number with its sign. */
export function signed(value, digits = 3) {
  const text = Math.abs(value).toFixed(digits);
  return Number(text) === 0 ? text : `${value > 0 ? "+" : "\u2212"}${text}`;
}

/** A number 0..1 and its bar; `kind` is a class of the bar. */
export function bar(value, kind = "") {
  return h("div", { class: "bar" }, h("b", {}, two(value)), h("span", {}, h("i", { class: kind, w: 100 * value })));
}

/** A number around 0 and its bar, which is full at `most`; null is said as such. */
export function around(value, most) {
  if (value === null) return h("span", { class: "hint" }, "the only word");
  const share = most > 0 ? (100 * Math.abs(value)) / most : 0;
  const kind = value < 0 ? "bar around less" : "bar around";
  return h("div", { class: kind, title: value.toFixed(6) }, h("b", {}, signed(value, 2)), h("span", {}, h("i", { w: share })));
}

/** The largest absolute value. */
export const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
