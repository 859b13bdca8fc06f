/** The panel for the operator's token, in the header of every page. */

import { byId, setText, show } from "./dom.js";
import { forgetToken, rememberToken, takeToken, token } from "./token.js";

const listeners = [];

/** Call a function whenever the token changes. */
export const onToken = (listener) => listeners.push(listener);

export function startTokenPanel() {
  takeToken();
  byId("token-form").addEventListener("submit", submit);
  byId("token-forget").addEventListener("click", forget);
  byId("token-panel").addEventListener("keydown", closeOnEscape);
  addEventListener("hashchange", () => takeToken() && changed());
  describe();
}

/** Open the panel with a reason, and move the focus into its field. */
export function askForToken(reason, { focus = true } = {}) {
  byId("token-panel").open = true;
  setText(byId("token-error"), reason);
  show(byId("token-error"), Boolean(reason));
  if (focus) byId("token").focus();
}

function submit(event) {
  event.preventDefault();
  const entered = byId("token").value.trim();
  if (!entered) return askForToken("Enter the token.");
  rememberToken(entered);
  byId("token-panel").open = false;
  byId("token-summary").focus();
  return changed();
}

function forget() {
  forgetToken();
  changed();
}

function changed() {
  byId("token").value = "";
  show(byId("token-error"), false);
  describe();
  for (const listener of listeners) listener(token());
}

function describe() {
  setText(byId("token-state"), token() ? "Operator token set" : "Operator token");
  show(byId("token-forget"), Boolean(token()));
}

function closeOnEscape(event) {
  if (event.key !== "Escape") return;
  byId("token-panel").open = false;
  byId("token-summary").focus();
}
