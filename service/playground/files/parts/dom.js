/** Elements without HTML in strings: what a person types stays text. */

export const $ = (id) => document.getElementById(id);

/**
 * An element with attributes and children. `w` sets the custom property --w (a share in per cent, or a count),
 * since the page's policy forbids style attributes; `on...` listens; null, undefined and false are left out.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "w") element.style.setProperty("--w", value.toFixed(2));
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children));
  return element;
}

/** A table with these titles of its columns, and rows or a <tbody>; `caption` is for who does not see it. */
export function table(titles, rows, { caption, ...attributes } = {}) {
  return h(
    "table",
    attributes,
    caption && h("caption", { class: "visually-hidden" }, caption),
    h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)))),
    rows instanceof Element ? rows : h("tbody", {}, rows),
  );
}

/** A table that may be wider than the page. */
export const scrolled = (label, inner) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, inner);

/** A part of the results, below its heading. */
export const card = (title, ...children) => h("section", { class: "card" }, h("h2", {}, title), ...children);

/** Replace what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

/** Tell people who do not see the page what has changed. */
export function say(text) {
  $("said").textContent = text;
}

export function options(select, choices, chosen) {
  fill(select, choices.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

const present = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);
