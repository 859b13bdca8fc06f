/** The line that says whether the page is up to date. */

import { byId, setAttribute, setText, show } from "./dom.js";
import { clockTime } from "./format.js";

/** When the last answer came. */
let last = null;

/** Show a state of `poll`; screen readers hear when the page is out of date, not each update. */
export function showFreshness(state, error) {
  if (state === "live") last = new Date();
  setAttribute(byId("freshness"), "data-state", state);
  setText(byId("freshness-text"), line(state));
  const trouble = byId("trouble");
  show(trouble, state === "trouble");
  setText(trouble, state === "trouble" ? warning(error) : "");
}

function line(state) {
  if (state === "live") return `Live, as of ${clockTime(last)}`;
  if (state === "trouble") return last ? `Out of date since ${clockTime(last)}` : "No data yet";
  return "Not updating";
}

function warning(error) {
  const shown = last ? ` What you see is from ${clockTime(last)}.` : "";
  return `${error.message ?? "Something went wrong."}${shown} Trying again by itself.`;
}
