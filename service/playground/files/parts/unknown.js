/** Which words a model does not know. /similarity says how many: asked about single words, it says which. */

import { ask } from "./api.js";

const MAX_WORDS = 64; // of more, the table says the share only
const AROUND = /^[\p{P}\p{S}]+|[\p{P}\p{S}]+$/gu;
const known = new Map(); // model -> word -> whether it is unknown

/** The words of `text` outside the vocabulary of `model`; none where the text has too many words to ask about. */
export async function unknownWords(model, text, signal) {
  const words = [...new Set(text.split(/\s+/).map((word) => word.replace(AROUND, "")).filter(Boolean))];
  if (words.length > MAX_WORDS) return [];
  if (!known.has(model)) known.set(model, new Map());
  const found = known.get(model);
  const open = words.filter((word) => !found.has(word));
  if (open.length > 0) {
    const { results } = await ask("similarity", { pairs: open.map((word) => ({ a: word, b: word })), model }, signal);
    open.forEach((word, i) => found.set(word, results[i].unknown[0] > 0));
  }
  return words.filter((word) => found.get(word));
}
