/** CSV as RFC 4180 has it: quotes around what holds separators, quotes or line ends; a quote within is doubled. TSV has no quotes. */

const SEPARATORS = [",", ";", "\t", "|"];

/**
 * A file's text -> `{ header, rows, separator }`; empty lines are left out.
 *
 * What would be read wrong is refused with its line: a quote that is not closed, text behind a closing quote, a row of
 * more or fewer fields than the header. `tsv`: tabs separate, and a quote is an ordinary character.
 */
export function parse(content, tsv) {
  const source = content.replace(/^\ufeff/, "").replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  const named = tsv ? null : /^sep=(.)\n/.exec(source);
  const separator = tsv ? "\t" : (named?.[1] ?? separatorOf(source));
  let [place, line] = named ? [named[0].length, 2] : [0, 1];
  let header = null;
  const rows = [];
  while (place < source.length) {
    const row = [];
    const begun = line;
    for (let more = true; more; ) {
      const name = header?.[row.length] || `column ${row.length + 1}`;
      const field = tsv || source[place] !== '"' ? plain(source, place, separator) : quoted(source, place, separator, line, name);
      row.push(field.text);
      line += field.lines;
      more = source[field.end] === separator;
      place = field.end + 1;
    }
    line += 1;
    if (row.length === 1 && row[0] === "") continue;
    if (header === null) header = row;
    else if (row.length === header.length) rows.push(row);
    else throw new Error(`Line ${begun}: ${row.length} ${row.length === 1 ? "field" : "fields"}, the header has ${header.length}.`);
  }
  return { header: header ?? [], rows, separator };
}

/** A field without quotes: it ends before the separator or the line's end. */
function plain(source, start, separator) {
  let end = start;
  while (end < source.length && source[end] !== separator && source[end] !== "\n") end += 1;
  return { text: source.slice(start, end), end, lines: 0 };
}

/** A field in quotes that opens at `start`. */
function quoted(source, start, separator, line, name) {
  let end = source.indexOf('"', start + 1);
  while (end >= 0 && source[end + 1] === '"') end = source.indexOf('"', end + 2);
  if (end < 0) throw new Error(`Line ${line}: the quote that opens ${name} is not closed.`);
  const text = source.slice(start + 1, end);
  const lines = text.split("\n").length - 1;
  if (end + 1 < source.length && source[end + 1] !== separator && source[end + 1] !== "\n") {
    if (lines > 0) throw new Error(`Line ${line}: the quote that opens ${name} is not closed: the next one, in line ${line + lines}, has text behind it.`);
    throw new Error(`Line ${line}: ${name} has text behind its closing quote; a quote within a field in quotes is written twice.`);
  }
  return { text: text.replaceAll('""', '"'), end: end + 1, lines };
}

/** The commonest separator of the first line, outside quotes. */
function separatorOf(source) {
  const first = source.split("\n", 1)[0].replaceAll(/"(?:[^"]|"")*"/g, "");
  const counts = SEPARATORS.map((each) => first.split(each).length - 1);
  const most = Math.max(...counts);
  if (most > 0 && counts.filter((count) => count === most).length > 1) {
    throw new Error("Line 1: the header has as many of one separator as of another: save the file with commas.");
  }
  return most > 0 ? SEPARATORS[counts.indexOf(most)] : ",";
}

/**
 * Bytes -> `{ text }`, or where they are no UTF-8 `{ line, readings }`: the first bad line, and what it would be in each
 * encoding that it may be in.
 */
export function decode(bytes) {
  const view = new Uint8Array(bytes);
  const zeros = (from) => view.slice(0, 4096).filter((byte, i) => byte === 0 && i % 2 === from).length;
  const marked = { "255,254": "utf-16le", "254,255": "utf-16be" }[view.slice(0, 2).join()];
  const wide = marked ?? (zeros(1) > 4 * zeros(0) + 4 ? "utf-16le" : zeros(0) > 4 * zeros(1) + 4 ? "utf-16be" : null);
  if (wide === null) {
    try {
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(view) };
    } catch {
      const before = new TextDecoder("utf-8").decode(view).split("\ufffd", 1)[0];
      const line = before.split(/\r\n|\r|\n/).length;
      return { line, readings: readings(view, ["windows-1252"], line) };
    }
  }
  return { line: 1, readings: readings(view, [wide], 1) };
}

const readings = (view, encodings, line) =>
  encodings.map((encoding) => {
    const text = new TextDecoder(encoding).decode(view);
    return { encoding, text, sample: text.split(/\r\n|\r|\n/)[line - 1].slice(0, 80) };
  });

/** Rows of cells -> a text, with commas. */
export function write(rows) {
  const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}
