/** FAQ: a list of questions and answers, what is asked, and the answer or that there is none. */

import { linkTo, remember } from "../parts/address.js";
import { clear, show } from "../parts/alerts.js";
import { NoAnswer, Refused, ask } from "../parts/api.js";
import { bar, two } from "../parts/bars.js";
import { copyBar, curl } from "../parts/copy.js";
import { decode, parse } from "../parts/csv.js";
import { $, fill, h, options, say, table } from "../parts/dom.js";
import { FAQ } from "../parts/examples.js";
import { NO_SECOND, defaultOf, offerModels } from "../parts/models.js";
import { examples, onFile, onSubmit, runner } from "../parts/tab.js";

const MATCHES = [["both", "both as one text"], ["either", "either: the better one"], ["question", "its question"], ["answer", "its answer"]];
const USUAL_SCORE = 0.5; // from which on to answer, where the service knows no confidence
const SHOWN = 3; // entries to choose from, where none is the answer
const MAX_BYTES = 1_000_000;

const panel = $("panel-faq");
const list = $("faq-list");
const question = $("faq-question");
const [model, second, match] = [$("faq-model"), $("faq-second"), $("faq-match")];
const inputs = { query: question, entries: list, model, rerank_model: second, match };
let chosen = {}; // what `semblance choose --faq` chose, of a file that it wrote
let least = null; // null: what was chosen, else what the service says, until the slider is moved

/** A pasted list -> its entries: blocks of lines, the first of which is the question; or CSV with these columns. */
function entriesOf(text) {
  const header = text.trimStart().split("\n", 1)[0].toLowerCase();
  if (/\bquestion\b/.test(header) && /\banswer\b/.test(header) && /[,;\t|]/.test(header)) return fromTable(text, header.includes("\t"));
  const blocks = text.split(/\n\s*\n/).map((block) => block.split("\n").map((line) => line.trim()).filter(Boolean));
  const found = blocks.filter((lines) => lines.length > 0);
  const bare = found.find((lines) => lines.length < 2);
  if (bare) throw new NoAnswer(`\u201c${bare[0]}\u201d has no answer below it.`);
  if (found.length < 2) throw new NoAnswer("The list needs two entries or more: a question on a line, its answer below it, then an empty line.");
  return found.map(([asked, ...lines]) => ({ question: asked, answer: lines.join(" ") }));
}

function fromTable(text, tsv) {
  const { header, rows } = parse(text.trimStart(), tsv);
  const at = ["question", "answer"].map((name) => header.findIndex((title) => title.trim().toLowerCase() === name));
  if (at.includes(-1)) throw new NoAnswer("The list needs the columns question and answer.");
  if (rows.length < 2) throw new NoAnswer("The list needs two entries or more.");
  return rows.map((row) => ({ question: row[at[0]], answer: row[at[1]] }));
}

const oneLine = (text) => text.replaceAll(/\s+/g, " ").trim();
const toBlocks = (entries) => entries.map((entry) => `${oneLine(entry.question)}\n${oneLine(entry.answer)}`).join("\n\n");

/** Take a file: a table, or what the command wrote, with its settings. */
async function read(file) {
  clear(panel);
  try {
    if (file.size > MAX_BYTES) throw new NoAnswer(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB; this page takes 1 MB.`);
    const { text } = decode(await file.arrayBuffer());
    if (text === undefined) throw new NoAnswer(`${file.name} is not UTF-8: save it as UTF-8.`);
    const { entries, settings } = /\.json$/i.test(file.name) ? fromJson(file.name, text) : { entries: fromTable(text, /\.tsv$/i.test(file.name)), settings: {} };
    list.value = toBlocks(entries);
    take(settings);
    fill($("faq-results"));
    say(`${entries.length} entries read`);
  } catch (error) {
    refuse(error);
  }
}

function fromJson(name, text) {
  let content = null;
  try {
    content = JSON.parse(text);
  } catch {
    // said below
  }
  const entries = content?.entries;
  const isText = (entry) => typeof entry?.question === "string" && typeof entry?.answer === "string";
  if (!Array.isArray(entries) || !entries.every(isText)) throw new NoAnswer(`${name} is no file that semblance choose --faq writes.`);
  return { entries, settings: content };
}

function take({ model: name, rerank_model: then, match: by, min_confidence: from, confidence_fit: fit, rerank_top: top }) {
  chosen = { model: name, rerank_model: then ?? NO_SECOND, match: by, min_confidence: from, confidence_fit: fit, rerank_top: top };
  least = null;
  if (name) offer({ model: name, rerank_model: then, match: by });
}

const isChosen = () => chosen.model === model.value && chosen.rerank_model === second.value && chosen.match === match.value;

function body(entries) {
  const found = { query: question.value, entries, match: match.value, model: model.value, top_k: SHOWN };
  if (second.value !== NO_SECOND) found.rerank_model = second.value;
  if (!isChosen()) return found;
  return { ...found, rerank_top: chosen.rerank_top, confidence_fit: chosen.confidence_fit };
}

const fields = () => ({
  question: question.value,
  list: list.value,
  model: model.value === defaultOf("/rank") ? null : model.value,
  rerank_model: second.value,
  match: match.value === "both" ? null : match.value,
});

const run = runner("faq", inputs, async (signal) => {
  remember("faq", fields());
  const asked = body(entriesOf(list.value));
  draw(asked, await ask("rank", asked, signal));
}, refuse);

/** What is no error of the service is told in its own words. */
function refuse(error, again = null) {
  const told = error instanceof NoAnswer || error instanceof Refused ? error : new NoAnswer(error.message);
  show(panel, told, inputs, error instanceof NoAnswer && error.message.startsWith("No answer from") ? again : null);
}

function draw(asked, answer) {
  const ranked = answer.suggestions ?? answer.results; // results are none where the service would not answer
  const [first, next] = ranked;
  const entry = asked.entries[first.index];
  const what = answer.confidence === null ? "score" : "confidence";
  const value = answer.confidence ?? first.score;
  const from = (isChosen() ? chosen.min_confidence : null) ?? answer.threshold ?? USUAL_SCORE;
  const verdict = h("div", { class: "meaning" });
  const kept = h("output", { for: "faq-least" });
  const slider = h("input", { id: "faq-least", type: "range", min: "0", max: "1", step: "0.01", value: String(least ?? from), oninput: () => ((least = Number(slider.value)), decide()) });

  function decide() {
    const given = value >= Number(slider.value);
    kept.textContent = two(Number(slider.value));
    fill(
      verdict,
      h("h2", {}, given ? "The answer" : "No answer in this list"),
      given ? h("p", { class: "given" }, entry.answer) : h("p", {}, `The nearest entry is \u201c${entry.question}\u201d, and its ${what} of ${two(value)} is below ${two(Number(slider.value))}.`),
      given && h("p", { class: "hint" }, `It answers \u201c${entry.question}\u201d.`),
      !given && h("p", {}, "Perhaps one of these:"),
      !given && h("ul", { class: "suggestions" }, ...ranked.map((result) => h("li", {}, asked.entries[result.index].question))),
    );
    say(given ? "An answer was found" : "No answer in this list");
  }

  decide();
  const cut = answer.truncated.candidates.includes(first.index);
  fill(
    $("faq-results"),
    h(
      "section",
      { class: "card" },
      verdict,
      h("div", { class: "threshold" }, h("label", { for: "faq-least" }, `Answer from a ${what} of`), slider, kept),
      h("h3", {}, "Why"),
      h("p", {}, why(asked, ranked, answer.confidence, entry)),
      cut && h("p", { class: "hint" }, "That entry was cut at the model\u2019s limit."),
      table(["Entry", "Its answer", "Score"], [first, next].map((result, place) => drawRow(asked, result, place)), { class: "stack", caption: "The first entry and the runner-up" }),
      copyBar(() => ({ link: linkTo("faq", fields()), curl: curl("rank", asked) })),
    ),
  );
}

function drawRow(asked, result, place) {
  const entry = asked.entries[result.index];
  const text = { question: entry.question, answer: entry.answer }[asked.match] ?? `${entry.question} ${entry.answer}`;
  const link = linkTo("compare", { a: asked.query, b: text, model: asked.rerank_model ?? asked.model });
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, entry.question, h("span", { class: "soft" }, place === 0 ? "first" : "runner-up")),
    h("td", { "data-title": "Its answer" }, entry.answer),
    h("td", { "data-title": "Score" }, bar(result.score), link && h("a", { href: link }, "Word by word")),
  );
}

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

/** What the confidence is made of, in words. */
function why(asked, [first, next], confidence, entry) {
  const words = [...new Set(wordsOf(asked.query))];
  const has = new Set(wordsOf(asked.match === "question" ? entry.question : asked.match === "answer" ? entry.answer : `${entry.question} ${entry.answer}`));
  const shared = words.filter((word) => has.has(word));
  const lead = `Its score is ${two(first.score)}, the runner-up\u2019s ${two(next.score)}; ${shared.length} of the ${words.length} words asked stand in it.`;
  if (confidence === null) return `${lead} For these models no confidence was fitted: the score decides.`;
  const fit = asked.confidence_fit ? ", as it was fitted on your own questions" : "";
  return `${lead} From this, and from how far it is above all other entries, it is right with a probability of ${two(confidence)}${fit}.`;
}

function offer(asking) {
  offerModels(model, second, asking.model, asking.rerank_model);
  options(match, MATCHES, MATCHES.some(([name]) => name === asking.match) ? asking.match : "both");
}

export function start() {
  const asked = FAQ.questions.map((name) => ({ name }));
  examples("faq", asked, ({ name }) => (question.value = name), run);
  onSubmit("faq", run);
  onFile("faq", read);
}

export function open(asking) {
  chosen = {};
  least = null;
  offer(asking);
  list.value = asking.list ?? toBlocks(FAQ.entries);
  question.value = asking.question ?? FAQ.questions[0];
  return run();
}
