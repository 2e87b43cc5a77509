/** Tokens for people. */

const NO_PIECES = /^(<bucket \d+>|\[UNK\])$/;

/** A token as a person reads it: `##ing` as `…ing`, what the model has no piece of as `?`. */
export function shown(token) {
  if (NO_PIECES.test(token)) return "?";
  return token.startsWith("##") ? `\u2026${token.slice(2)}` : token;
}
