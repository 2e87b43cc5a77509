/** What is asked stands in the address, so that a link opens the same question and runs it. */

const LONGEST = 8_000; // characters; servers and proxies refuse longer first lines

/** The tab and the fields of the address. */
export function asked() {
  const fields = Object.fromEntries(new URLSearchParams(location.search));
  const { tab, ...rest } = fields;
  return { tab: tab ?? "compare", fields: rest };
}

/** The link to a question; null where it would be too long. */
export function linkTo(tab, fields) {
  const search = new URLSearchParams(tab === "compare" ? {} : { tab });
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, value);
  }
  const link = new URL(search.size > 0 ? `?${search}` : ".", new URL(location.pathname, location.origin));
  return link.href.length <= LONGEST ? link.href : null;
}

/** Put a question into the address. One that is too long leaves only its tab there. */
export function remember(tab, fields) {
  const link = linkTo(tab, fields) ?? linkTo(tab, {});
  if (link !== location.href) history.pushState(null, "", link);
}
