/** Compare: two sentences, every model, and why one of them says so. */

import { linkTo, remember } from "../parts/address.js";
import { clear, show } from "../parts/alerts.js";
import { NoAnswer, Refused, ask, wasStopped } from "../parts/api.js";
import { copyBar, curl, python, text } from "../parts/copy.js";
import { $, fill, h, say } from "../parts/dom.js";
import { PAIRS } from "../parts/examples.js";
import { drawMeaning, drawVerdict } from "../parts/meaning.js";
import { able, defaultOf, first, served } from "../parts/models.js";
import { examples, onSubmit } from "../parts/tab.js";
import { unknownWords } from "../parts/unknown.js";
import { drawExplanation } from "./explanation.js";
import { drawTable } from "./table.js";

const AT_A_TIME = 4;
const ALIKE = 0.6;
const OF_ALL_MODELS = new Set(["empty_text", "too_large", "unauthorized", "invalid_request", "unsupported_media_type", "not_json"]);
const ROUTE = "/similarity";

const panel = $("panel-compare");
const a = $("compare-a");
const b = $("compare-b");
const inputs = { "pairs.0.a": a, "pairs.0.b": b, a, b };
let rows = [];
let chosen = null; // { model, task }
let asked = null; // the pair of the results that are shown
let stop = new AbortController();
let showsAll = false;
let more = 0; // models that are also here, and not asked yet

/** One row for each model and task that gives two sentences a score. */
function questions() {
  const models = able("similarity", ROUTE);
  const main = new Set(first(models));
  const shown = models.filter((model) => showsAll || main.has(model) || model.id === chosen?.model);
  more = models.length - shown.length;
  const found = shown.flatMap((model) =>
    ["similarity", "paraphrase"]
      .filter((task) => model.tasks.includes(task))
      .map((task) => ({ model: model.id, task, name: task === "similarity" ? model.id : `${model.id}, ${task}`, title: model.title })),
  );
  return found.map((row) => ({ ...row, result: null, scale: null, error: null, unknown: [[], []] }));
}

const isChosen = ({ model, task }) => model === chosen.model && task === chosen.task;

async function score(row, pair, signal) {
  try {
    const body = { pairs: [pair], model: row.model, ...(row.task === "similarity" ? {} : { task: row.task }) };
    const answer = await ask("similarity", body, signal);
    Object.assign(row, { result: answer.results[0], scale: answer.scale });
    if (row.result.unknown.some((share) => share > 0)) await nameUnknown(row, pair, signal);
  } catch (error) {
    if (wasStopped(error)) throw error;
    if (row.result === null) row.error = error;
  }
}

async function nameUnknown(row, pair, signal) {
  for (const [i, side] of ["a", "b"].entries()) {
    if (row.result.unknown[i] > 0) row.unknown[i] = await unknownWords(row.model, pair[side], signal);
  }
}

async function run() {
  if (served.models.length === 0) return; // the page has said already why it does not know them
  stop.abort();
  stop = new AbortController();
  const { signal } = stop;
  const pair = { a: a.value, b: b.value };
  asked = pair;
  clear(panel);
  panel.setAttribute("aria-busy", "true");
  rows = questions();
  const isDefault = chosen === null || (chosen.model === defaultOf(ROUTE) && chosen.task === "similarity");
  chosen ??= { model: rows[0].model, task: "similarity" };
  remember("compare", fields(isDefault));
  try {
    await score(rows[0], pair, signal);
    const { error } = rows[0];
    if (error instanceof NoAnswer || (error instanceof Refused && OF_ALL_MODELS.has(error.code))) {
      $("compare-results").hidden = true;
      show(panel, error, inputs, error instanceof NoAnswer ? run : null);
      return;
    }
    $("compare-results").hidden = false;
    draw();
    const waiting = rows.slice(1).filter((row) => !isChosen(row)); // `why` asks for the chosen one
    const workers = Array.from({ length: AT_A_TIME }, async () => {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
        await score(row, pair, signal);
        drawModels();
      }
    });
    await Promise.all([why(signal), ...workers]);
    drawHonesty(pair);
    say(`${rows.length} models have answered`);
  } catch (error) {
    if (!wasStopped(error)) show(panel, error);
  } finally {
    if (stop.signal === signal) panel.setAttribute("aria-busy", "false");
  }
}

const fields = (isDefault) => ({
  ...asked,
  model: isDefault ? null : chosen.model,
  task: chosen.task === "similarity" ? null : chosen.task,
});

function choose(row) {
  chosen = { model: row.model, task: row.task };
  remember("compare", fields(false));
  drawModels();
  why(stop.signal).catch((error) => wasStopped(error) || show(panel, error));
}

function draw() {
  fill($("compare-meaning"));
  fill($("compare-explanation"));
  drawModels();
}

function drawModels() {
  drawTable($("compare-models"), rows, chosen, choose);
  if (more > 0) $("compare-models").append(h("button", { type: "button", id: "show-all", onclick: () => ((showsAll = true), run()) }, `Show all: ${more} more models are also here`));
  drawVerdict(rows);
}

async function why(signal) {
  const row = rows.find(isChosen);
  const place = $("compare-explanation");
  if (row !== undefined && row.result === null && row.error === null) {
    await score(row, asked, signal);
    drawModels();
  }
  if (row?.result) drawMeaning($("compare-meaning"), row, signal);
  else fill($("compare-meaning"));
  drawVerdict(rows);
  const { model } = chosen;
  try {
    const explained = await ask("explain", { ...asked, model }, signal);
    if (chosen.model !== model) return;
    drawExplanation(place, explained, copies());
  } catch (error) {
    if (wasStopped(error)) throw error;
    fill(place);
    show(place, error);
  }
}

function copies() {
  const { model, task } = chosen;
  const pair = asked;
  return copyBar(() => ({
    curl: curl("similarity", { pairs: [pair], model, ...(task === "similarity" ? {} : { task }) }),
    "curl of the explanation": curl("explain", { ...pair, model }),
    Python: python(
      `similarity([(${text(pair.a)}, ${text(pair.b)})], model=${text(model)}${task === "similarity" ? "" : `, task=${text(task)}`})`,
      "answer.results[0].score",
    ),
    link: linkTo("compare", fields(false)),
  }));
}

/** For a hard example: which models call alike what people would not, counted from their answers. */
function drawHonesty(pair) {
  const example = PAIRS.find((known) => known.hard && known.a === pair.a && known.b === pair.b);
  const answered = rows.filter(({ result }) => result !== null);
  if (example === undefined || answered.length === 0) return;
  const names = (isFooled) => answered.filter(({ result }) => result.score >= ALIKE === isFooled).map(({ name }) => name);
  const [fooled, others] = [names(true), names(false)];
  const level = ALIKE.toFixed(2);
  const failing =
    others.length === 0
      ? `Every model here fails: all ${answered.length} answers are ${level} or more.`
      : fooled.length <= others.length
        ? `${fooled.length} of ${answered.length} answers are ${level} or more all the same: ${fooled.join(", ") || "none"}.`
        : `${fooled.length} of ${answered.length} answers are ${level} or more all the same, all but those of ${others.join(", ")}.`;
  const hint = example.follow ? " Whether one sentence contradicts the other is a question for the tab Entailment." : "";
  fill(
    panel.querySelector(".alerts"),
    h("p", { class: "note", id: "honest" }, h("strong", {}, "A hard one. "), `${example.hard} ${failing}${hint}`),
  );
}

function put(example) {
  a.value = example.a;
  b.value = example.b;
}

export function start() {
  examples("compare", PAIRS.filter(({ hard }) => !hard), put, run);
  examples("compare", PAIRS.filter(({ hard }) => hard), put, run, "Hard ones:");
  onSubmit("compare", run);
  $("compare-swap").addEventListener("click", () => (put({ a: b.value, b: a.value }), run()));
}

/** Show a question of the address and run it; without one the first example. */
export function open(asking) {
  put(asking.a === undefined && asking.b === undefined ? PAIRS[0] : { a: asking.a ?? "", b: asking.b ?? "" });
  chosen = asking.model === undefined ? null : { model: asking.model, task: asking.task ?? "similarity" };
  return run();
}
