/** What tabs have in common: a form that asks one question at a time, examples of it, and a place for files. */

import { clear, show } from "./alerts.js";
import { NoAnswer, wasStopped } from "./api.js";
import { $, fill, h } from "./dom.js";

/**
 * What runs a tab's question: `ask(signal)` asks it and shows the answer. A new question stops the one before; an error
 * is shown above the emptied results, by `refuse(error, again)` where a tab has its own words for it.
 */
export function runner(name, inputs, ask, refuse = null) {
  const panel = $(`panel-${name}`);
  let stop = new AbortController();
  return async function run() {
    stop.abort();
    stop = new AbortController();
    clear(panel);
    try {
      await ask(stop.signal);
    } catch (error) {
      if (wasStopped(error)) return;
      fill($(`${name}-results`));
      if (refuse !== null) refuse(error, run);
      else show(panel, error, inputs, error instanceof NoAnswer ? run : null);
    }
  };
}

/** Buttons for examples, by their names; a click puts one into the form and runs it. */
export function examples(name, given, put, run, title = given.length > 1 ? "Examples:" : "Example:") {
  const buttons = given.map((example) => h("button", { type: "button", onclick: () => (put(example), run()) }, example.name));
  $(`${name}-examples`).append(h("span", {}, title), ...buttons);
}

export function onSubmit(name, run) {
  $(`${name}-form`).addEventListener("submit", (event) => (event.preventDefault(), run()));
}

/** A file that is chosen, or dropped, is given to `read`. */
export function onFile(name, read) {
  const drop = $(`${name}-drop`);
  for (const kind of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
    });
  }
  $(`${name}-file`).addEventListener("change", ({ target }) => target.files[0] && read(target.files[0]));
}
