/** Batch: a CSV file of pairs, back with their scores. */

import { remember } from "../parts/address.js";
import { clear, show } from "../parts/alerts.js";
import { BASE, NoAnswer, Refused, ask, wasStopped } from "../parts/api.js";
import { copyBar, quoted } from "../parts/copy.js";
import { decode, parse, write } from "../parts/csv.js";
import { $, card, fill, h, options, say, scrolled, table } from "../parts/dom.js";
import { SAMPLE } from "../parts/examples.js";
import { able, choices, defaultOf, served } from "../parts/models.js";
import { onFile, onSubmit } from "../parts/tab.js";

const MAX_PAIRS = 1_000;
const MAX_BYTES = 4_000_000;
const CHUNK = 100; // pairs a request, so that the bar moves
const SHOWN = 20;
const BINS = 10;
const SEPARATORS = { ";": "semicolons", "\t": "tabs", "|": "bars" };
const ENCODINGS = { "windows-1252": "Windows-1252", "utf-16le": "UTF-16", "utf-16be": "UTF-16, big-endian" };

const panel = $("panel-batch");
const results = $("batch-results");
const [first, second, model] = [$("batch-a"), $("batch-b"), $("batch-model")];
let file = null; // { name, header, rows }
let stop = new AbortController();

/** Take a file's content; refuse what is no table of at most 1,000 pairs. */
function take(name, content) {
  clear(panel);
  fill(results);
  file = null;
  $("batch-run").disabled = true;
  $("batch-choices").hidden = true;
  try {
    const { header, rows, separator } = parse(content, /\.tsv$/i.test(name));
    if (header.length < 2) throw new Error(`${name} has no header with two columns or more.`);
    if (rows.length === 0) throw new Error(`${name} has a header and no pairs.`);
    if (rows.length > MAX_PAIRS) throw tooLarge(name, `has ${rows.length.toLocaleString("en")} pairs`, header);
    file = { name, header, rows };
    const columns = header.map((title, i) => [String(i), title || `column ${i + 1}`]);
    const of = (title, otherwise) => String(header.indexOf(title) >= 0 ? header.indexOf(title) : otherwise);
    options(first, columns, of("a", 0));
    options(second, columns, of("b", 1));
    $("batch-choices").hidden = false;
    $("batch-run").disabled = false;
    say(`${rows.length} pairs read`);
    fill(results, h("p", { class: "hint" }, `${name}: ${rows.length} pairs.${separator === "," ? "" : ` Columns are separated by ${SEPARATORS[separator] ?? separator}.`}`));
  } catch (error) {
    refuse(error);
  }
}

function refuse(error) {
  show(panel, error instanceof NoAnswer || error instanceof Refused ? error : new NoAnswer(error.message));
  if (error.command) panel.querySelector(".alert").append(copyBar(() => ({ "command line": error.command })), h("pre", {}, error.command));
}

function tooLarge(name, how, header) {
  const [left, right] = header.includes("a") && header.includes("b") ? ["a", "b"] : header;
  const [file, a, b] = [name, left, right].map((word) => (/^[\w./-]+$/.test(word) ? word : quoted(word)));
  const command = `semblance batch ${file} scored.csv --column ${a} --column ${b} --url ${BASE.href}`;
  const error = new Error(`${name} ${how}; this page takes ${MAX_PAIRS.toLocaleString("en")} pairs. The command line takes any number, and goes on where it was interrupted:`);
  return Object.assign(error, { command });
}

async function read(given) {
  if (given.size > MAX_BYTES) {
    const first = (await given.slice(0, 65_536).text()).split("\n", 1)[0];
    const header = first.includes('"') ? [] : parse(first, false).header;
    refuse(tooLarge(given.name, `has ${(given.size / 1e6).toFixed(1)} MB`, header.length > 1 ? header : ["a", "b"]));
    return;
  }
  const decoded = decode(await given.arrayBuffer());
  if (decoded.text !== undefined) take(given.name, decoded.text);
  else askEncoding(given.name, decoded);
}

/** A file that is no UTF-8: nothing is guessed, the person says how it is to be read. */
function askEncoding(name, { line, readings }) {
  clear(panel);
  file = null;
  $("batch-run").disabled = true;
  $("batch-choices").hidden = true;
  const choice = ({ encoding, text, sample }) =>
    h("p", {}, h("button", { type: "button", onclick: () => take(name, text) }, `Read it as ${ENCODINGS[encoding]}`), ` Line ${line} would be: ${sample}`);
  fill(results, h("section", { class: "card", id: "batch-encoding" }, h("p", {}, `${name} is not UTF-8: line ${line}. Is it another encoding? Else save the file as UTF-8.`), readings.map(choice)));
  say(`${name} is not UTF-8`);
}

async function run() {
  if (served.models.length === 0) return; // the page has said already why it does not know them
  stop.abort();
  stop = new AbortController();
  const { signal } = stop;
  clear(panel);
  const asked = file;
  const bar = h("progress", { max: String(asked.rows.length), value: "0", "aria-label": "Pairs answered" });
  const count = h("p", { class: "hint" });
  fill(results, h("section", { class: "card" }, bar, count));
  $("batch-stop").hidden = false;
  const outcomes = new Array(asked.rows.length).fill(null);
  try {
    const size = Math.min(CHUNK, served.limits.max_pairs);
    for (let start = 0; start < asked.rows.length; start += size) {
      await chunk(asked.rows, start, Math.min(start + size, asked.rows.length), outcomes, signal);
      bar.value = Math.min(start + size, asked.rows.length);
      count.textContent = `${bar.value} of ${asked.rows.length}`;
    }
    draw(asked, outcomes);
  } catch (error) {
    if (wasStopped(error)) fill(results, h("p", { class: "hint" }, "Stopped."));
    else {
      fill(results);
      show(panel, error, {}, error instanceof NoAnswer ? run : null);
    }
  } finally {
    if (!signal.aborted || stop.signal === signal) $("batch-stop").hidden = true;
  }
}

/** Ask for some rows. A row that the service names as bad gets its message, and the others are asked for again. */
async function chunk(rows, start, end, outcomes, signal) {
  let left = Array.from({ length: end - start }, (_, i) => start + i);
  while (left.length > 0) {
    const pairs = left.map((i) => ({ a: rows[i][first.value] ?? "", b: rows[i][second.value] ?? "" }));
    try {
      const answer = await ask("similarity", { pairs, model: model.value }, signal);
      answer.results.forEach((result, i) => (outcomes[left[i]] = { result }));
      return;
    } catch (error) {
      const bad = error instanceof Refused ? /^pairs\.(\d+)\.[ab]$/.exec(error.field ?? "") : null;
      if (bad === null) throw error;
      outcomes[left[Number(bad[1])]] = { error };
      left = left.filter((_, i) => i !== Number(bad[1]));
    }
  }
}

function draw(asked, outcomes) {
  const scored = outcomes.filter(({ result }) => result);
  const rated = scored.some(({ result }) => result.rating !== undefined);
  const added = ["score", "raw_score", ...(rated ? ["rating"] : []), "truncated", "unknown", "error"];
  const written = [[...asked.header, ...added.map((name) => (asked.header.includes(name) ? `semblance_${name}` : name))]];
  asked.rows.forEach((row, i) => written.push([...asked.header.map((_, j) => row[j] ?? ""), ...cells(outcomes[i], rated)]));
  const mean = scored.reduce((sum, { result }) => sum + result.score, 0) / Math.max(1, scored.length);
  const bad = outcomes.length - scored.length;
  const href = URL.createObjectURL(new Blob([write(written)], { type: "text/csv" }));
  const row = ({ result, error }, i) =>
    h(
      "tr",
      {},
      [first, second].map((column) => h("td", {}, asked.rows[i][column.value] ?? "")),
      result ? h("td", { class: "number" }, result.score.toFixed(2)) : h("td", { class: "bad" }, error.message),
    );
  say(`${scored.length} pairs scored`);
  fill(
    results,
    card(
      `${scored.length} pairs scored by ${model.value}`,
      h("p", {}, scored.length > 0 ? `Mean score ${mean.toFixed(2)}. ` : "", bad > 0 ? `${bad} ${bad === 1 ? "row was" : "rows were"} refused; the column error says why.` : "No row was refused."),
      h("p", {}, h("a", { href, download: asked.name.replace(/(\.\w+)?$/, ".scored.csv") }, "Download the file with scores")),
      scored.length > 0 && histogram(scored.map(({ result }) => result.score)),
    ),
    card(
      outcomes.length > SHOWN ? `The first ${SHOWN} rows` : "The rows",
      scrolled("Rows with their scores", table(["First sentence", "Second sentence", "Score"], outcomes.slice(0, SHOWN).map(row))),
    ),
  );
}

/** How scores are spread: a table of ten bars. */
function histogram(scores) {
  const counts = new Array(BINS).fill(0);
  for (const score of scores) counts[Math.min(BINS - 1, Math.floor(score * BINS))] += 1;
  const most = Math.max(1, ...counts);
  const title = (i) => (i / BINS).toFixed(1);
  return h(
    "table",
    { class: "histogram-table" },
    h("caption", { class: "hint" }, "How many pairs have scores from 0 to 1"),
    h("tbody", {}, h("tr", {}, counts.map((count, i) => h("td", { title: `${title(i)} to ${title(i + 1)}: ${count}` }, count > 0 && String(count), h("i", { w: (100 * count) / most }))))),
    h("tfoot", {}, h("tr", {}, counts.map((_, i) => h("th", { scope: "col" }, title(i))))),
  );
}

function cells({ result, error }, rated) {
  if (!result) return ["", "", ...(rated ? [""] : []), "", "", error.message];
  const rating = rated ? [String(result.rating)] : [];
  return [String(result.score), String(result.raw_score), ...rating, String(result.truncated.some(Boolean)), String(Math.max(...result.unknown)), ""];
}

export function start() {
  onFile("batch", read);
  $("batch-sample").addEventListener("click", () => {
    take("example.csv", write(SAMPLE));
    run();
  });
  $("batch-stop").addEventListener("click", () => stop.abort());
  onSubmit("batch", () => file && run());
}

export function open() {
  options(model, choices(able("similarity", "/similarity")), model.value || defaultOf("/similarity"));
  remember("batch", {});
}
