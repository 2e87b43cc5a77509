/** Languages: which the served models are for, and texts that seem to be in another. */

const NAMES = new Intl.DisplayNames(["en"], { type: "language" });
const list = new Intl.ListFormat("en");

/** For which languages the models are, as a sentence; "" where none says. */
export function languagesOf(models) {
  const codes = new Set(models.flatMap(({ languages }) => languages ?? []));
  if (codes.size === 0) return "";
  const most = models.every(({ languages }) => languages?.length === codes.size) ? "The models here read" : "Models here read";
  return `${most} ${list.format([...codes].map((code) => NAMES.of(code)))}.`;
}

/** What to say of texts, [[what it is, its hint]]; "" where no hint was given. */
export function foreign(texts) {
  const said = texts.filter(([, hint]) => hint).map(([what, hint]) => `${what} seems to be in ${NAMES.of(hint.replace("?", ""))}`);
  if (said.length === 0) return "";
  const sentence = `${list.format(said)}, which the model is not for: the scores mean little.`;
  return sentence[0].toUpperCase() + sentence.slice(1);
}
