/** Which models there are, and in which order they are shown. */

import { ask } from "./api.js";
import { options } from "./dom.js";

export const NO_SECOND = ""; // the choice of one stage

/** What GET /models says; the same object is filled again when a key is given. */
export const served = { models: [], defaults: {}, rerank: { default_model: null, default_top: 1 }, limits: {} };

export async function loadModels() {
  Object.assign(served, await ask("models"));
}

/** The models with a task: the default of `route` first, then those of other routes, then those that can do more. */
export function able(task, route) {
  const place = (model) => {
    if (model.default_for.includes(route)) return 0;
    if (model.default_for.length > 0) return 1;
    if (model.id === served.rerank.default_model) return 2;
    if (model.tasks.includes("entailment") || model.tasks.includes("paraphrase")) return 3;
    return model.family === "interaction" ? 4 : 5;
  };
  return served.models.filter((model) => model.tasks.includes(task)).sort((a, b) => place(a) - place(b));
}

const FIRST = 4;

/** Those of `models` to show first: the default and the main ones, and others up to four in all. */
export function first(models) {
  const isMain = (model, i) => i === 0 || model.main;
  return [...models.filter(isMain), ...models.filter((model, i) => !isMain(model, i))].slice(0, Math.max(FIRST, models.filter(isMain).length));
}

export const defaultOf = (route) => served.defaults[route];

/** Choices of a <select>. */
export const choices = (models) => models.map((model) => [model.id, model.id]);

/** Offer the models of a ranking's two stages, with what is asked chosen. */
export function offerModels(model, second, asked, askedSecond) {
  const models = choices(able("similarity", "/rank"));
  // A link's model that is not served stays a choice, so that the service says so.
  const known = (name) => (name && !models.some(([found]) => found === name) ? [...models, [name, name]] : models);
  options(model, known(asked), asked ?? defaultOf("/rank"));
  options(second, [[NO_SECOND, "none: one stage"], ...known(askedSecond)], askedSecond ?? NO_SECOND);
}
