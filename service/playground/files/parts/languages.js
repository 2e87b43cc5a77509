/** The languages that the served models are for. */

const NAMES = new Intl.DisplayNames(["en"], { type: "language" });
const list = new Intl.ListFormat("en");

/** For which languages the models are, as a sentence; "" where none says. */
export function languagesOf(models) {
  const codes = new Set(models.flatMap(({ languages }) => languages ?? []));
  if (codes.size === 0) return "";
  const most = models.every(({ languages }) => languages?.length === codes.size) ? "The models here read" : "Models here read";
  return `${most} ${list.format([...codes].map((code) => NAMES.of(code)))}.`;
}
