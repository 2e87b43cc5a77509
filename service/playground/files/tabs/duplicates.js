/** Duplicates: which texts of a list say the same, which a fact keeps apart, and which pairs a person should look at. */

import { linkTo, remember } from "../parts/address.js";
import { ask } from "../parts/api.js";
import { bar } from "../parts/bars.js";
import { copyBar, curl, python } from "../parts/copy.js";
import { $, card, fill, h, say, scrolled, table } from "../parts/dom.js";
import { TICKETS } from "../parts/examples.js";
import { examples, onSubmit, runner } from "../parts/tab.js";

const list = $("duplicates-list");
const guard = $("duplicates-guard");

const listed = () => list.value.split("\n").map((line) => line.trim()).filter(Boolean);
const body = () => ({ texts: listed(), ...(guard.checked ? {} : { guard: false }) });
const fields = () => ({ texts: listed().join("\n"), guard: guard.checked ? null : "no" });

const run = runner("duplicates", { texts: list }, async (signal) => {
  remember("duplicates", fields());
  const asked = body();
  const answer = await ask("dedupe", asked, signal);
  draw(asked, answer);
  say(`${asked.texts.length} texts, ${clustersOf(answer).length} clusters`);
});

/** The positions of the texts of each cluster, in the order of their first ones. */
function clustersOf({ results }) {
  const found = new Map();
  results.forEach(({ cluster }, i) => found.set(cluster, [...(found.get(cluster) ?? []), i]));
  return [...found.values()];
}

function draw(asked, answer) {
  const clusters = clustersOf(answer);
  const rows = clusters.flatMap((members, n) => members.map((i, place) => row(asked, answer, i, place === 0 ? n + 1 : null, members.length)));
  const judge = answer.pair_model ? `${answer.model} found near texts, ${answer.pair_model} read them.` : `By the cosines of ${answer.model}: no model that is served reads both texts.`;
  fill(
    $("duplicates-results"),
    card(
      `${asked.texts.length} texts, ${clusters.length} clusters`,
      scrolled("Clusters", table(["Cluster", "Text", "Kept apart from"], rows, { caption: "Texts by cluster, and what keeps each apart from its nearest other" })),
      h("p", { class: "hint" }, judge),
      copyBar(() => ({
        curl: curl("dedupe", asked),
        Python: python(`dedupe(${JSON.stringify(asked.texts)}${guard.checked ? "" : ", guard=False"})`, "[result.cluster for result in answer.results]"),
        link: linkTo("duplicates", fields()),
      })),
    ),
    answer.review.length > 0 && pairs("In doubt: look at these", asked, answer.review),
    answer.apart.length > 0 && pairs("Near, and left apart", asked, answer.apart),
  );
}

function row({ texts }, { results }, i, number, size) {
  const { kept_apart: other } = results[i];
  return h(
    "tr",
    {},
    h("td", {}, number === null ? "" : `${number}${size > 1 ? ` (${size})` : ""}`),
    h("th", { scope: "row" }, texts[i]),
    h("td", {}, other && [texts[other.index], h("span", { class: "hint" }, ` (${other.why})`)]),
  );
}

function pairs(title, { texts }, found) {
  const lines = found.map((pair) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, texts[pair.index_1]),
      h("td", {}, texts[pair.index_2]),
      h("td", {}, pair.score === undefined ? "not read" : bar(pair.score, "the same")),
      h("td", {}, `${pair.joined ? "joined" : "apart"}: ${pair.why}`),
    ),
  );
  const caption = "Pairs of texts with the verdict and its reasons";
  return card(title, scrolled(title, table(["One", "Other", "The same", "Why"], lines, { caption })));
}

function put(example) {
  list.value = example.texts.join("\n");
}

export function start() {
  examples("duplicates", [TICKETS], put, run);
  onSubmit("duplicates", run);
}

export function open(asking) {
  put(asking.texts === undefined ? TICKETS : { texts: asking.texts.split("\n") });
  guard.checked = asking.guard !== "no";
  return run();
}
