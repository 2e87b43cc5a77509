/** CSV as RFC 4180 has it: quotes around what holds separators, quotes or line ends; a quote within is doubled. */

/** A text -> rows of cells; `separator` is one character. Empty lines are left out. */
export function parse(content, separator) {
  const rows = [];
  let row = [];
  let cell = "";
  let quoted = false;
  const end = () => {
    row.push(cell);
    cell = "";
  };
  const endRow = () => {
    end();
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  const source = content.replace(/^\ufeff/, "").replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  for (let i = 0; i < source.length; i += 1) {
    const character = source[i];
    if (quoted) {
      if (character !== '"') cell += character;
      else if (source[i + 1] === '"') {
        cell += '"';
        i += 1;
      } else quoted = false;
    } else if (character === '"' && cell === "") quoted = true;
    else if (character === separator) end();
    else if (character === "\n") endRow();
    else cell += character;
  }
  if (quoted) throw new Error("A quote is opened and never closed: this is no whole CSV file.");
  if (cell !== "" || row.length > 0) endRow();
  return rows;
}

/** The separator of a file, by its first line. */
export function separatorOf(content) {
  const first = content.split("\n", 1)[0];
  return [",", "\t", ";"].reduce((best, found) => (first.split(found).length > first.split(best).length ? found : best));
}

/** Rows of cells -> a text, with commas. */
export function write(rows) {
  const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}
