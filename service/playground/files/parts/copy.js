/** "Copy as curl / Python / link". */

import { BASE, hasKey } from "./api.js";
import { fill, h, say } from "./dom.js";

/** A row of buttons; `texts()` gives what they copy, by their name, null where there is nothing to copy. */
export function copyBar(texts) {
  const place = h("pre", { tabindex: "0", "aria-label": "What was copied", hidden: true });
  const copy = async (name) => {
    const text = texts()[name];
    place.hidden = false;
    if (text === null) {
      fill(place, "Too long for a link: copy it as curl or Python.");
      return;
    }
    try {
      await navigator.clipboard.writeText(text);
      say(`Copied as ${name}`);
      fill(place, text);
    } catch {
      // Browsers allow it on https and localhost only.
      fill(place, text);
      getSelection().selectAllChildren(place);
      say("Selected: copy it with your keyboard");
    }
  };
  const buttons = Object.keys(texts()).map((name) => h("button", { type: "button", onclick: () => copy(name) }, name));
  return h("div", { class: "copy" }, h("span", {}, "Copy as"), buttons, place);
}

/** A curl command; the key stands in a variable of the shell. */
export function curl(path, body) {
  const header = hasKey() ? ` -H "X-API-Key: $SEMBLANCE_API_KEY"` : "";
  return `curl ${quoted(new URL(path, BASE).href)}${header} --json ${quoted(JSON.stringify(body))}`;
}

/** A program for the Python client; `call` follows `client.`. */
export function python(call, shown) {
  const key = hasKey() ? `, api_key=os.environ["SEMBLANCE_API_KEY"]` : "";
  const imports = hasKey() ? "import os\n\nfrom semblance import Client" : "from semblance import Client";
  return `${imports}\n\nwith Client(${JSON.stringify(BASE.href)}${key}) as client:\n    answer = client.${call}\n    print(${shown})`;
}

/** A JSON text is a Python text too. */
export const text = (value) => JSON.stringify(value);

/** A word for a shell. */
export const quoted = (value) => `'${value.replaceAll("'", `'\\''`)}'`;
