/** Messages for pages that the collector does not show: no token, a wrong one, no such campaign. */

import { byId, setText, show } from "./dom.js";
import { askForToken } from "./token-panel.js";
import { token } from "./token.js";

export function showRefusal(error) {
  const words = error && (error.status === 401 ? unauthorised() : error.message);
  setText(byId("refused"), words ?? "");
  show(byId("refused"), Boolean(words));
}

/** Ask for the token after an action was refused for lack of a valid one. */
export function demandToken() {
  askForToken(
    token() ? "The collector did not accept this token." : "This needs the operator token.",
  );
}

/** Whether the focus may be moved: nobody is typing elsewhere. */
const mayMoveFocus = () =>
  document.activeElement === document.body || byId("token-panel").contains(document.activeElement);

function unauthorised() {
  const reason = token()
    ? "The collector did not accept this token."
    : "Reading needs the operator token here.";
  askForToken(reason, { focus: mayMoveFocus() });
  if (token())
    return "The collector did not accept the operator token. Enter it again at the top of this page.";
  return "This collector shows campaigns to its operators only. Enter the operator token at the top of this page.";
}
