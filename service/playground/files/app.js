/** The page: its tabs, its address, the API key and the theme. */

import { asked, linkTo } from "./parts/address.js";
import { clear, show } from "./parts/alerts.js";
import { NoAnswer, useKey } from "./parts/api.js";
import { $ } from "./parts/dom.js";
import { languagesOf } from "./parts/languages.js";
import { loadModels, served } from "./parts/models.js";
import * as batch from "./tabs/batch.js";
import * as claims from "./tabs/claims.js";
import * as compare from "./tabs/compare.js";
import * as duplicates from "./tabs/duplicates.js";
import * as entailment from "./tabs/entailment.js";
import * as faq from "./tabs/faq.js";
import * as rank from "./tabs/rank.js";

const TABS = { compare, rank, faq, duplicates, entailment, claims, batch };
const NAMES = Object.keys(TABS);
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };
const addresses = {}; // of tabs that were left, so that one comes back as it was
let shown = null;

function select(name) {
  for (const other of NAMES) {
    const isIt = other === name;
    $(`panel-${other}`).hidden = !isIt;
    $(`tab-${other}`).setAttribute("aria-selected", String(isIt));
    $(`tab-${other}`).tabIndex = isIt ? 0 : -1;
  }
}

/** Show what the address asks. */
async function open() {
  const { tab, fields } = asked();
  shown = NAMES.includes(tab) ? tab : "compare";
  select(shown);
  await TABS[shown].open(fields);
}

function change(name) {
  if (name === shown) return;
  if (shown !== null) addresses[shown] = location.href;
  history.pushState(null, "", addresses[name] ?? linkTo(name, {}));
  if (served.models.length > 0) open();
  else begin();
}

async function begin() {
  clear($("start-alert"));
  try {
    await loadModels();
  } catch (error) {
    select(NAMES.includes(asked().tab) ? asked().tab : "compare");
    show($("start-alert"), error, {}, error instanceof NoAnswer ? begin : null);
    return;
  }
  $("languages").textContent = languagesOf(served.models);
  $("languages").hidden = $("languages").textContent === "";
  await open();
}

function showKey(isShown) {
  $("key-panel").hidden = !isShown;
  $("key-button").setAttribute("aria-expanded", String(isShown));
  if (isShown) $("key-input").focus();
}

/** The theme is the system's until the button says otherwise, and stays so for this visit. */
function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const name = () => ($("theme-button").textContent = isDark() ? "Light" : "Dark");
  $("theme-button").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();
}

/** Enter asks; Shift and Enter begins a line. Not in a list of candidates, entries, texts or claims, or a document. */
function startEnter() {
  for (const area of document.querySelectorAll("textarea:not(#rank-candidates, #faq-list, #duplicates-list, #claims-document, #claims-list)")) {
    area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      area.form.requestSubmit();
    });
  }
}

for (const name of NAMES) {
  TABS[name].start();
  const tab = $(`tab-${name}`);
  tab.addEventListener("click", () => change(name));
  tab.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS)) return;
    const next = NAMES[(NAMES.indexOf(name) + STEPS[event.key] + NAMES.length) % NAMES.length];
    $(`tab-${next}`).focus();
    change(next);
  });
}
$("key-button").addEventListener("click", () => showKey($("key-panel").hidden));
$("key-panel").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey($("key-input").value);
  $("key-input").value = "";
  showKey(false);
  $("key-button").focus();
  begin();
});
document.addEventListener("key-wanted", () => showKey(true));
addEventListener("popstate", open);
startTheme();
startEnter();
begin();
