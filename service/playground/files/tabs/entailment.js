/** Entailment: does the second sentence follow from the first, and the first from the second? */

import { linkTo, remember } from "../parts/address.js";
import { line } from "../parts/alerts.js";
import { NoAnswer, Refused, ask } from "../parts/api.js";
import { bar, two } from "../parts/bars.js";
import { copyBar, curl, python, text } from "../parts/copy.js";
import { $, card, fill, h, say, table } from "../parts/dom.js";
import { PREMISES } from "../parts/examples.js";
import { able, defaultOf, served } from "../parts/models.js";
import { examples, onSubmit, runner } from "../parts/tab.js";

const ROUTE = "/entailment";
const LABELS = ["entailment", "neutral", "contradiction", "not_entailment"]; // the last of models of two labels
const SAYS = { entailment: "It follows", neutral: "It may or may not be so", contradiction: "It contradicts", not_entailment: "It does not follow" };

const premise = $("entailment-premise");
const hypothesis = $("entailment-hypothesis");
// The second pair is the first one turned round.
const inputs = { "pairs.0.premise": premise, "pairs.0.hypothesis": hypothesis, "pairs.1.premise": hypothesis, "pairs.1.hypothesis": premise };
let chosen = null;

const pairs = () => [
  { premise: premise.value, hypothesis: hypothesis.value },
  { premise: hypothesis.value, hypothesis: premise.value },
];

const run = runner("entailment", inputs, async (signal) => {
  chosen ??= defaultOf(ROUTE);
  remember("entailment", fields());
  const names = able("entailment", ROUTE).map(({ id }) => id);
  if (!names.includes(chosen)) names.unshift(chosen);
  const answers = await Promise.all(names.map((model) => judged(model, signal)));
  const first = answers.find(({ error }) => error === null) ?? answers[0];
  if (first.error !== null) throw first.error;
  draw(answers);
  say(`${answers.length} models have answered`);
});

async function judged(model, signal) {
  try {
    return { model, results: (await ask("entailment", { pairs: pairs(), model }, signal)).results, error: null };
  } catch (error) {
    if (!(error instanceof Refused || error instanceof NoAnswer)) throw error;
    return { model, results: null, error };
  }
}

const fields = () => ({ premise: premise.value, hypothesis: hypothesis.value, model: chosen === defaultOf(ROUTE) ? null : chosen });

function draw(answers) {
  const { results, error } = answers.find(({ model }) => model === chosen);
  const [forward, backward] = pairs();
  const choose = (model) => {
    chosen = model;
    remember("entailment", fields());
    draw(answers);
    $(`entails-${model}`)?.focus();
  };
  const cell = (answer, i) => {
    if (answer.error !== null) return i === 0 ? h("td", { class: "bad", colspan: "2" }, line(answer.error)) : null;
    const { label, probabilities } = answer.results[i];
    return h("td", {}, `${label} ${two(probabilities[label])}`);
  };
  const row = (answer) =>
    h(
      "tr",
      { class: answer.model === chosen ? "chosen" : "" },
      h("th", { scope: "row" }, h("button", { type: "button", class: "link", id: `entails-${answer.model}`, "aria-pressed": String(answer.model === chosen), onclick: () => choose(answer.model) }, answer.model)),
      cell(answer, 0),
      cell(answer, 1),
    );
  fill(
    $("entailment-results"),
    card(
      ["What ", h("code", {}, chosen), " says"],
      error === null
        ? h("div", { class: "directions" }, direction("From first to second", forward, results[0]), direction("From second to first", backward, results[1]))
        : h("p", { class: "alert" }, line(error)),
      copyBar(() => ({
        curl: curl("entailment", { pairs: pairs(), model: chosen }),
        Python: python(`entailment([(${text(forward.premise)}, ${text(forward.hypothesis)})], model=${text(chosen)})`, "answer.results[0].label"),
        link: linkTo("entailment", fields()),
      })),
    ),
    card(
      "Every model\u2019s answer",
      h("div", { class: "scroll" }, table(["Model", "First to second", "Second to first"], answers.map(row), { caption: "The most probable label by each model, in both directions" })),
      answers.some(({ model }) => served.models.some(({ id, title }) => id === model && title.includes("SICK"))) && h("p", { class: "hint" }, "Models trained on SICK know captions of pictures and little else; their probabilities of other text are to be doubted."),
    ),
  );
}

function direction(title, pair, { label, probabilities, truncated }) {
  return h(
    "div",
    { class: "card" },
    h("h3", {}, title),
    h("p", { class: "soft" }, pair.premise, " \u2192 ", pair.hypothesis),
    h("p", {}, h("strong", {}, SAYS[label])),
    h("dl", { class: "three" }, LABELS.filter((name) => name in probabilities).map((name) => [h("dt", { class: name === label ? "top-label" : "" }, name), h("dd", {}, bar(probabilities[name], name))])),
    truncated.some(Boolean) && h("p", { class: "hint" }, "A sentence was cut at the model\u2019s limit."),
  );
}

function put(example) {
  premise.value = example.premise;
  hypothesis.value = example.hypothesis;
}

export function start() {
  examples("entailment", PREMISES, put, run);
  onSubmit("entailment", run);
  $("entailment-swap").addEventListener("click", () => (put({ premise: hypothesis.value, hypothesis: premise.value }), run()));
}

export function open(asking) {
  const given = asking.premise !== undefined || asking.hypothesis !== undefined;
  put(given ? { premise: asking.premise ?? "", hypothesis: asking.hypothesis ?? "" } : PREMISES[0]);
  chosen = asking.model ?? null;
  return run();
}
