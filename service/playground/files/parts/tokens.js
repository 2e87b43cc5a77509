/** Tokens for people. */

const CONTINUATION = "##";
const NO_PIECES = /^(<bucket \d+>|\[UNK\])$/;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;

/** A token as a person reads it: `##ing` as `…ing`, a bucket of unknown words as `?`. */
export function shown(token) {
  if (NO_PIECES.test(token)) return "?";
  return token.startsWith(CONTINUATION) ? `\u2026${token.slice(CONTINUATION.length)}` : token;
}

/** Words that the model read in pieces, or that it has no piece of; the service says how many there are, tokens show which. */
export function unknownWords(text, tokens) {
  const words = [];
  for (const token of tokens) {
    if (token.startsWith(CONTINUATION) && words.length > 0) {
      words[words.length - 1] = { word: words.at(-1).word + token.slice(CONTINUATION.length), whole: false };
    } else {
      words.push({ word: token, whole: true });
    }
  }
  const found = tokens.includes("[UNK]") ? [] : words.filter(({ whole }) => !whole).map(({ word }) => word);
  if (words.some(({ word }) => NO_PIECES.test(word))) {
    const read = new Set(words.map(({ word }) => word));
    const without = text.toLowerCase().match(WORD) ?? text.trim().split(/\s+/);
    found.push(...without.filter((word) => !read.has(word)));
  }
  return [...new Set(found)];
}
