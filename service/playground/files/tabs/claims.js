/** Claims: what a document says of each, and the passage that says so, marked in the text. */

import { linkTo, remember } from "../parts/address.js";
import { ask } from "../parts/api.js";
import { bar } from "../parts/bars.js";
import { copyBar, curl, python, text } from "../parts/copy.js";
import { $, card, fill, h, say, scrolled, table } from "../parts/dom.js";
import { POLICY } from "../parts/examples.js";
import { examples, onSubmit, runner } from "../parts/tab.js";

const SAYS = { entailed: "Entailed", contradicted: "Contradicted", not_stated: "Not stated" };

const claimsDocument = $("claims-document");
const list = $("claims-list");
const inputs = { documents: claimsDocument, claims: list };

const listed = () => list.value.split("\n").map((line) => line.trim()).filter(Boolean);
const body = () => ({ documents: claimsDocument.value, claims: listed() });
const fields = () => ({ document: claimsDocument.value, claims: listed().join("\n") });

const run = runner("claims", inputs, async (signal) => {
  remember("claims", fields());
  const asked = body();
  const answer = await ask("claims", asked, signal);
  draw(asked, answer);
  say(`${answer.results.length} claims are checked`);
});

function draw(asked, answer) {
  // Positions are in code points; a string of JavaScript counts some of them twice.
  const letters = Array.from(asked.documents);
  const marked = h("div", { class: "document", tabindex: "0", role: "region", "aria-label": "The document, with the passage that is chosen" });
  const buttons = [];
  const choose = (i) => {
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(n === i)));
    const { label, evidence, runner_up: other } = answer.results[i];
    const passage = evidence ?? other;
    const mark = h("mark", { class: evidence ? label : "not_stated" }, letters.slice(passage.start, passage.end).join(""));
    fill(marked, letters.slice(0, passage.start).join(""), mark, letters.slice(passage.end).join(""));
    mark.scrollIntoView({ block: "nearest" });
  };
  const row = (claim, i) => {
    const { label, confidence, evidence, runner_up: other } = answer.results[i];
    const passage = evidence ?? other;
    const button = h("button", { type: "button", class: "link", id: `claim-${i}`, "aria-pressed": "false", onclick: () => choose(i) }, claim);
    buttons.push(button);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, button),
      h("td", { class: label }, SAYS[label]),
      h("td", {}, bar(confidence, label)),
      h(
        "td",
        {},
        h("span", { class: "soft" }, evidence ? "" : "nearest: ", passage.headings.map((title) => `${title} > `).join("")),
        passage.text,
        passage.differences.length > 0 && h("span", { class: "hint" }, ` (${passage.differences.join("; ")})`),
      ),
    );
  };
  fill(
    $("claims-results"),
    card(
      "What the document says",
      scrolled("Claims and evidence", table(["Claim", "It is", "Sure", "Evidence"], asked.claims.map(row), { caption: "Each claim with its label, how sure it is, and the evidence" })),
      h("p", { class: "hint" }, `${answer.encoder} found the passages, ${answer.model} read them. Below .6 read the passage yourself.`),
      copyBar(() => ({
        curl: curl("claims", asked),
        Python: python(`claims(${text(asked.documents)}, ${JSON.stringify(asked.claims)})`, "[(result.label, result.evidence) for result in answer.results]"),
        link: linkTo("claims", fields()),
      })),
    ),
    card("Where it stands", marked),
  );
  choose(0);
}

function put(example) {
  claimsDocument.value = example.document;
  list.value = example.claims.join("\n");
}

export function start() {
  examples("claims", [POLICY], put, run);
  onSubmit("claims", run);
}

export function open(asking) {
  const given = asking.document !== undefined || asking.claims !== undefined;
  put(given ? { document: asking.document ?? "", claims: (asking.claims ?? "").split("\n") } : POLICY);
  return run();
}
