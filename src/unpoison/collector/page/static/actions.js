/** The buttons with which an operator changes a campaign. */

import { ask, campaignPath, post } from "./api.js";
import { actionDialog, attempt, whileBusy } from "./dialogs.js";
import { byId, setText, show } from "./dom.js";
import { dateTime, fromLocalField, toLocalField } from "./format.js";
import { startInvites } from "./invites.js";
import { FieldError } from "./numbers.js";
import { token } from "./token.js";

/** The states of a campaign in which each button is shown. */
const STATES = {
  "action-open": ["draft", "closed"],
  "action-invites": ["draft", "open"],
  "action-extend": ["draft", "open", "closed"],
  "action-close": ["open"],
  "action-delete": ["draft", "closed"],
};

let current = null;

export function showActions(status) {
  current = status;
  show(byId("actions"), Boolean(token()));
  setText(byId("action-open"), status.state === "closed" ? "Open again" : "Open campaign");
  byId("action-open").classList.toggle("primary", status.state === "draft");
  for (const [id, states] of Object.entries(STATES)) {
    const byInvite = id !== "action-invites" || status.access === "invite";
    show(byId(id), byInvite && states.includes(status.state));
  }
}

/** Wire the buttons. `onChange()` asks for a new status, `onRefused(error)` for a token. */
export function startActions(campaign, { onChange, onRefused }) {
  const path = (suffix) => campaignPath(campaign, suffix);
  const done = (dialog, message) => {
    dialog?.close();
    notice(message);
    onChange();
  };
  const open = () =>
    post(path("/open")).then(() =>
      done(null, "The campaign is open: devices can enrol and report."),
    );
  byId("action-open").addEventListener("click", (event) =>
    whileBusy(event.currentTarget, () =>
      attempt(open, (error) => (error.status === 401 ? onRefused(error) : notice(error.message))),
    ),
  );
  const dialogs = {
    close: async (dialog) => {
      await post(path("/close"));
      done(dialog, "The campaign is closed.");
    },
    extend: async (dialog) => {
      const closes = closingTime();
      await post(path("/extend"), { closes_at: closes });
      done(
        dialog,
        closes
          ? `The campaign closes ${dateTime(closes)}.`
          : "The campaign has no closing time now.",
      );
    },
    delete: async () => {
      await ask(path(""), { method: "DELETE" });
      location.assign("/");
    },
  };
  for (const [name, act] of Object.entries(dialogs)) {
    const dialog = byId(`${name}-dialog`);
    const prepare = () => (byId("extend-closes").value = toLocalField(current.closes_at));
    const start = actionDialog(dialog, { prepare, act: () => act(dialog), onRefused });
    byId(`action-${name}`).addEventListener("click", start);
  }
  byId("action-invites").addEventListener(
    "click",
    startInvites(campaign, { onDone: onChange, onRefused }),
  );
}

function closingTime() {
  const field = byId("extend-closes");
  if (field.validity.badInput)
    throw new FieldError("closes_at", "Enter a full date and time, or none.");
  return fromLocalField(field.value);
}

/** Shows a line at the top and moves the focus there: the button that was pressed may be gone. */
export function notice(message) {
  setText(byId("notice"), message);
  show(byId("notice"), true);
  byId("notice").focus();
}
