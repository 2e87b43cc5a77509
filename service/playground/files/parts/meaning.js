/** What a score says in words: by the scale of the answer, and by examples that the same model scores. */

import { ask } from "./api.js";
import { two } from "./bars.js";
import { $, fill, h } from "./dom.js";
import { ANCHORS } from "./examples.js";

// By the rating rounded, 0 to 5. Such a score follows topic and words: it does not see that "raise" and "lower" are opposites,
// so that even the highest is not called "the same".
const STS = [
  "different in topic and words",
  "somewhat alike in topic",
  "alike in topic",
  "alike in topic and words",
  "close in topic and words",
  "very close in topic and words",
];
const SICK = ["unrelated", "hardly related", "somewhat related", "closely related", "very closely related"];
const LEVELS = [0.2, 0.5, 0.8];
const anchors = new Map(); // model and task -> pairs with their scores

/** A few words on one result of /similarity, and the sentence behind them. */
export function meaning(result, scale) {
  if (scale !== "similarity") {
    const what = scale === "relevance_probability" ? "that it answers" : "that both say the same";
    return { short: likely(result.score), long: `Probability ${what}, as this model sees it: ${two(result.score)}.` };
  }
  if (!result.rating_scale) {
    return {
      short: "its own scale",
      long: "This model has no scale of people\u2019s ratings: compare its scores with each other, not with another model\u2019s.",
    };
  }
  const [low, high] = result.rating_scale;
  const rating = `The model expects that people would rate this pair ${result.rating.toFixed(2)} on a scale of ${low} to ${high}`;
  const near = Math.round(result.rating);
  if (low === 0 && high === 5) {
    return { short: STS[near], long: `${rating}. It follows topic and words; whether both say the same is what paraphrase tells.` };
  }
  if (low === 1 && high === 5) return { short: SICK[near - 1], long: `${rating}; 1 is \u201cunrelated\u201d, 5 \u201cvery closely related\u201d.` };
  return { short: "", long: `${rating}.` };
}

const likely = (probability) => (probability < 0.35 ? "probably not the same" : probability > 0.65 ? "probably the same" : "uncertain");

/** The score of the chosen model, large, on its scale, with examples. */
export function drawMeaning(place, row, signal) {
  const { result, scale, name } = row;
  const said = meaning(result, scale);
  const examples = h("table", {}, h("tbody", {}, h("tr", {}, h("td", {}, "Asking \u2026"))));
  const opened = h("details", {}, h("summary", {}, "What do pairs at 0.20, 0.50 and 0.80 look like?"), examples);
  opened.addEventListener("toggle", () => opened.open && drawExamples(examples, row, signal), { once: true });
  const scaleOf = [0, ...LEVELS, 1].map((level) => h("small", { w: 100 * level }, String(level)));
  fill(
    place,
    h(
      "section",
      { class: "meaning" },
      h("h2", {}, "What ", h("code", {}, name), " says"),
      h("p", { class: "big" }, h("strong", { id: "score" }, two(result.score)), h("span", {}, said.short)),
      scale === "similarity" && h("p", { id: "verdict" }),
      h("div", { class: "scale", "aria-hidden": "true" }, h("i", { w: 100 * result.score }), scaleOf),
      h("p", { class: "hint" }, said.long),
      opened,
    ),
  );
}

/** Beside a score of likeness: whether both texts say the same, by the models that tell. */
export function drawVerdict(rows) {
  const place = $("verdict");
  if (place === null) return;
  const told = rows.filter(({ task, result }) => task === "paraphrase" && result !== null);
  const each = ({ model, result }) => [h("strong", {}, likely(result.score)), ` (${two(result.score)}, `, h("code", {}, model), ")"];
  fill(place, told.length > 0 && "Do they say the same? ", told.flatMap((row, i) => (i === 0 ? each(row) : [", ", ...each(row)])));
}

async function drawExamples(place, row, signal) {
  try {
    const scored = await anchorsOf(row, signal);
    const rows = LEVELS.map((level) => {
      const nearest = scored.reduce((best, pair) => (Math.abs(pair.score - level) < Math.abs(best.score - level) ? pair : best));
      return h("tr", {}, h("th", { scope: "row" }, two(nearest.score)), h("td", {}, nearest.a, h("br"), nearest.b));
    });
    fill(place, h("caption", { class: "hint" }, "Of ", String(scored.length), " pairs, those that this model scores nearest to them:"), h("tbody", {}, rows));
  } catch (error) {
    fill(place, h("tbody", {}, h("tr", {}, h("td", { class: "bad" }, error.message))));
  }
}

async function anchorsOf({ model, task }, signal) {
  const id = `${model} ${task}`;
  if (!anchors.has(id)) {
    const { results } = await ask("similarity", { pairs: ANCHORS.map(([a, b]) => ({ a, b })), model, task }, signal);
    anchors.set(id, ANCHORS.map(([a, b], i) => ({ a, b, score: results[i].score })));
  }
  return anchors.get(id);
}
