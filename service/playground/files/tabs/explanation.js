/** Why a score is what it is: POST /explain as tables. */

import { around, largest, signed } from "../parts/bars.js";
import { fill, h } from "../parts/dom.js";
import { heat } from "../parts/heat.js";

const CHOSEN = "focus"; // PWIM: 1 where two words were matched one to one, 0.1 elsewhere
const MATCHED = 0.99;
const NO_PIECES = /^(<bucket \d+>|\[UNK\])$/;

/** A token as a person reads it: `##ing` as `…ing`, what the model has no piece of as `?`. */
function shown(token) {
  if (NO_PIECES.test(token)) return "?";
  return token.startsWith("##") ? `\u2026${token.slice(2)}` : token;
}

/** Draw what an answer of /explain holds; `copies` is the bar below the heading. */
export function drawExplanation(place, answer, copies) {
  const rows = answer.a.tokens.map(shown);
  const columns = answer.b.tokens.map(shown);
  const vectors = Object.fromEntries(answer.vectors.map((vector) => [vector.name, vector]));
  const matrices = Object.fromEntries(answer.matrices.map((matrix) => [matrix.name, matrix]));
  const shares = vectors.contributions;
  fill(
    place,
    h(
      "section",
      { class: "why" },
      h("h2", {}, "Why?"),
      h("p", {}, summary(answer, shares, matrices)),
      h("div", { class: "words" }, words("First sentence", rows, vectors, "a"), words("Second sentence", columns, vectors, "b")),
      answer.matrices.filter((matrix) => matrix.name !== CHOSEN || !matrices.cosine).map((matrix) => drawMatrix(matrix, matrices, answer, rows, columns, shares)),
      copies,
    ),
  );
}

function summary(answer, shares, matrices) {
  const raw = `The model\u2019s raw score is ${answer.raw_score.toFixed(3)}; as a score from 0 to 1 that is ${answer.score.toFixed(2)}. `;
  if (shares) return `${raw}The raw score is a sum: the shares of the first sentence\u2019s words add up to it exactly, and so do those of the second\u2019s.`;
  if (matrices[CHOSEN]) return `${raw}This model lets every word meet every other, and matches them one to one.`;
  if (matrices.attention) return `${raw}This model reads each word of the second sentence while it looks at the words of the first.`;
  return `${raw}This model is no sum over words; what can be shown is how the raw score falls when a word is left out.`;
}

/** One sentence, word by word: its share, and what its absence costs. */
function words(title, tokens, vectors, side) {
  const columns = [
    ["contributions", "Share"],
    ["deletion", "Cost of its absence"],
  ].filter(([name]) => vectors[name]);
  const most = Object.fromEntries(columns.map(([name]) => [name, largest([...vectors[name].a, ...vectors[name].b])]));
  return h(
    "table",
    {},
    h("caption", {}, h("h3", {}, title)),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Word"), columns.map(([name, text]) => h("th", { scope: "col", title: vectors[name].description }, text)))),
    h(
      "tbody",
      {},
      tokens.map((token, i) =>
        h("tr", {}, h("th", { scope: "row", title: token }, token), columns.map(([name]) => h("td", {}, around(vectors[name][side][i], most[name])))),
      ),
    ),
  );
}

function drawMatrix(matrix, matrices, answer, rows, columns, shares) {
  const isShares = matrix.name === "contributions" && shares;
  const focus = matrix.name === "cosine" ? matrices[CHOSEN] : undefined;
  const title = isShares ? "Which words meet which" : focus ? "Word matches" : matrix.name === "attention" ? "Attention" : matrix.name;
  return heat({
    title,
    caption: `${matrix.description[0].toUpperCase()}${matrix.description.slice(1)}. Rows are the first sentence, columns the second.`,
    rows,
    columns,
    values: matrix.values,
    range: matrix.range,
    picked: focus ? focus.values.map((row) => row.map((weight) => weight > MATCHED)) : null,
    sums: isShares ? { a: shares.a, b: shares.b, all: answer.raw_score } : null,
    inWords: isShares && answer.raw_score > 0 ? (value) => `${signed((100 * value) / answer.raw_score, 0)} % of the raw score` : undefined,
  });
}
