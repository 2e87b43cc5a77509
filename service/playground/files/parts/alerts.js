/** Errors, in the service's own words. */

import { NoAnswer, Refused } from "./api.js";
import { fill, h } from "./dom.js";

/** One line on an error, for a table's cell. */
export function line(error) {
  return error instanceof Refused ? `${error.message} (${error.code})` : error.message;
}

/**
 * Show an error above the results of a tab.
 *
 * `inputs` are the form's controls by the field that a message may name (`pairs.0.a`): the one named is marked.
 */
export function show(panel, error, inputs = {}, again = null) {
  clear(panel);
  const details = [];
  if (error instanceof Refused) {
    if (error.field) details.push(`field ${error.field}`);
    if (error.limit !== null && error.limit !== undefined) details.push(`limit ${error.limit}`);
    details.push(`code ${error.code}`, `request ${error.requestId}`);
    const input = inputs[error.field] ?? inputs[error.field?.split(".")[0]];
    if (input) {
      input.setAttribute("aria-invalid", "true");
      details.unshift(labelOf(input));
    }
    if (error.status === 401) document.dispatchEvent(new CustomEvent("key-wanted"));
  } else if (!(error instanceof NoAnswer)) {
    console.error(error); // a fault of this page
  }
  const button = again && h("button", { type: "button", onclick: again }, "Try again");
  fill(
    place(panel),
    h("div", { class: "alert", role: "alert" }, error.message, button, details.length > 0 && h("small", {}, details.join(" · "))),
  );
}

/** Take errors and marks away. */
export function clear(panel) {
  fill(place(panel));
  for (const input of panel.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

const place = (panel) => panel.querySelector(".alerts") ?? panel;
const labelOf = (input) => document.querySelector(`label[for="${input.id}"]`)?.textContent ?? input.id;
