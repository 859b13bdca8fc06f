/** What to say when the collector does not show something: no token, a wrong one, nothing there. */

import { byId, setText, show } from "./dom.js";
import { askForToken } from "./token-panel.js";
import { token } from "./token.js";

export function showRefusal(error) {
  const words = error && (error.status === 401 ? unauthorised() : error.message);
  setText(byId("refused"), words ?? "");
  show(byId("refused"), Boolean(words));
}

/** An action was refused for want of a (right) token: say so at the field. */
export function demandToken() {
  askForToken(
    token() ? "The collector did not accept this token." : "This needs the operator token.",
  );
}

/** Nobody is typing anywhere else. */
const atRest = () =>
  document.activeElement === document.body || byId("token-panel").contains(document.activeElement);

function unauthorised() {
  const reason = token()
    ? "The collector did not accept this token."
    : "Reading needs the operator token here.";
  askForToken(reason, { focus: atRest() });
  if (token())
    return "The collector did not accept the operator token. Enter it again at the top of this page.";
  return "This collector shows campaigns to its operators only. Enter the operator token at the top of this page.";
}
