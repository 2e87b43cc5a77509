/** Rank: a question and candidates, in one stage or two, and what a threshold would keep. */

import { linkTo, remember } from "../parts/address.js";
import { ask } from "../parts/api.js";
import { bar, two } from "../parts/bars.js";
import { copyBar, curl, python, text } from "../parts/copy.js";
import { $, card, fill, h, say, table } from "../parts/dom.js";
import { QUESTIONS } from "../parts/examples.js";
import { NO_SECOND, defaultOf, offerModels, served } from "../parts/models.js";
import { examples, onSubmit, runner } from "../parts/tab.js";

const MAX_SHOWN = 200;

const query = $("rank-query");
const candidates = $("rank-candidates");
const model = $("rank-model");
const second = $("rank-second");
const top = $("rank-top");
const inputs = { query, candidates, model, rerank_model: second, rerank_top: top };
let threshold = null; // null: half the best score, until the slider is moved

const listed = () => candidates.value.split("\n").map((line) => line.trim()).filter(Boolean);

function body(stages) {
  const one = { query: query.value, candidates: listed(), model: model.value };
  return stages === 1 ? one : { ...one, rerank_model: second.value, rerank_top: top.value === "" ? null : Number(top.value) };
}

const run = runner("rank", inputs, async (signal) => {
  const stages = second.value === NO_SECOND ? 1 : 2;
  remember("rank", fields());
  const first = await ask("rank", body(1), signal);
  const final = stages === 2 ? await ask("rank", body(2), signal) : first;
  draw(first, final, stages);
  say(`${final.results.length} candidates in order`);
});

const fields = () => ({
  query: query.value,
  candidates: listed().join("\n"),
  model: model.value === defaultOf("/rank") ? null : model.value,
  rerank_model: second.value,
  rerank_top: second.value === NO_SECOND ? null : top.value,
  threshold: threshold === null ? null : two(threshold),
});

function draw(first, final, stages) {
  const texts = listed();
  const before = new Map(first.results.map((result, place) => [result.index, { place, score: result.score }]));
  const rows = final.results.map((result, place) => ({
    ...result,
    place,
    text: texts[result.index],
    before: before.get(result.index),
    // What decides is the score of the last model; a candidate that it has not read is below any threshold.
    counts: stages === 1 || result.stage === 2 ? result.score : -1,
  }));
  const kept = h("output", { for: "rank-threshold" });
  const drawn = h("tbody", {});
  const slider = h("input", { id: "rank-threshold", type: "range", min: "0", max: "1", step: "0.01", value: String(threshold ?? Math.floor(50 * rows[0].score) / 100), oninput: move, onchange: () => remember("rank", fields()) });

  function keep() {
    const least = Number(slider.value);
    const count = rows.filter((row) => row.counts >= least).length;
    kept.textContent = `${two(least)} keeps ${count} of ${rows.length}`;
    fill(drawn, rows.slice(0, MAX_SHOWN).map((row) => drawRow(row, final, row.counts >= least)));
  }

  function move() {
    threshold = Number(slider.value);
    keep();
  }

  keep();
  const second = stages === 2;
  fill(
    $("rank-results"),
    card(
      second ? `${final.model} ordered all, ${final.rerank_model} the best ${final.results.filter(({ stage }) => stage === 2).length} again` : `The order by ${final.model}`,
      h("div", { class: "threshold" }, h("label", { for: "rank-threshold" }, "Keep scores of at least"), slider, kept),
      second && h("p", { class: "hint" }, `The two models\u2019 scores are on different scales. The threshold looks at ${final.rerank_model}\u2019s (${scaleIn(final.rerank_scale)}); what only the first model has read is not kept.`),
      !second && h("p", { class: "hint" }, `Scores are ${scaleIn(final.scale)}.`),
      h("div", {}, table(["Place", "Candidate", ...(second ? [final.model, final.rerank_model, "Moved"] : ["Score"])], drawn, { class: "stack", caption: "Candidates, best first" })),
      rows.length > MAX_SHOWN && h("p", { class: "hint" }, `The best ${MAX_SHOWN} of ${rows.length} are shown; the threshold counts all.`),
      copyBar(() => ({ curl: curl("rank", body(stages)), Python: python(call(stages), "answer.results[0].index"), link: linkTo("rank", fields()) })),
    ),
  );
}

function call(stages) {
  const { query: question, candidates: found, model: name, rerank_model: secondName, rerank_top: howMany } = body(stages);
  const more = stages === 1 ? "" : `, rerank_model=${text(secondName)}${howMany === null ? "" : `, rerank_top=${howMany}`}`;
  return `rank(${text(question)}, ${text(found)}, model=${text(name)}${more})`;
}

function drawRow(row, final, isKept) {
  const isCut = final.truncated.candidates.includes(row.index);
  const second = final.rerank_model;
  return h(
    "tr",
    { class: isKept ? "" : "dropped" },
    h("td", { class: "number" }, String(row.place + 1)),
    h("th", { scope: "row" }, row.text, isCut && h("span", { class: "soft" }, "cut at the model\u2019s limit")),
    h("td", { "data-title": second && final.model }, bar(row.before.score)),
    second && h("td", { "data-title": second }, row.stage === 2 ? bar(row.score) : h("span", { class: "hint" }, "not read")),
    second && h("td", {}, moved(row.before.place, row.place)),
  );
}

function moved(from, to) {
  if (from === to) return h("span", { class: "hint" }, "stays");
  const up = from > to;
  return h("span", { class: up ? "moved-up" : "" }, `${up ? "\u25b2" : "\u25bc"} ${Math.abs(from - to)} `, h("span", { class: "hint" }, `from ${from + 1}`));
}

const SCALES = {
  similarity: "how alike the two texts are",
  paraphrase_probability: "probabilities that both say the same",
  relevance_probability: "probabilities that the candidate answers the question",
};
const scaleIn = (scale) => SCALES[scale] ?? scale;

function put(example) {
  query.value = example.query;
  candidates.value = example.candidates.join("\n");
}

export function start() {
  examples("rank", QUESTIONS, put, run);
  onSubmit("rank", run);
}

export function open(asking) {
  offerModels(model, second, asking.model, asking.rerank_model ?? (asking.query === undefined ? served.rerank.default_model : null));
  top.value = asking.rerank_top ?? "5";
  threshold = asking.threshold === undefined ? null : Math.min(1, Math.max(0, Number(asking.threshold) || 0));
  put(asking.query === undefined && asking.candidates === undefined ? QUESTIONS[0] : { query: asking.query ?? "", candidates: (asking.candidates ?? "").split("\n") });
  return run();
}
