/** The dialog that issues invites, and shows them once. */

import { campaignPath, post, saveAs } from "./api.js";
import { actionDialog } from "./dialogs.js";
import { byId, setText, show } from "./dom.js";
import { count, plural } from "./format.js";
import { wholeNumber } from "./numbers.js";

/** A text field with all of 100,000 codes would be slow; copy and download take all. */
const MOST_SHOWN = 1000;
let codes = [];

/** Wire the dialog; returns the function that opens it. */
export function startInvites(campaign, { onDone, onRefused }) {
  const dialog = byId("invites-dialog");
  byId("invites-links").addEventListener("change", () => list(campaign));
  byId("invites-copy").addEventListener("click", () => copy(campaign));
  byId("invites-save").addEventListener("click", () => {
    saveAs(
      new Blob([`${lines(campaign).join("\n")}\n`], { type: "text/plain" }),
      `${campaign}.invites.txt`,
    );
    setText(byId("invites-message"), "Saved.");
  });
  dialog.addEventListener("close", () => (codes = []));
  // The Escape key must not close codes that cannot be shown again.
  dialog.addEventListener("cancel", (event) => codes.length && event.preventDefault());
  const act = async () => {
    if (codes.length) return;
    ({ invites: codes } = await post(campaignPath(campaign, "/invites"), requestBody()));
    reveal(campaign);
    onDone();
  };
  return actionDialog(dialog, { prepare, act, onRefused });
}

function requestBody() {
  const days = byId("invites-days").value.trim();
  return {
    count: wholeNumber(byId("invites-count").value, "count"),
    days: days ? wholeNumber(days, "days") : null,
  };
}

function prepare() {
  codes = [];
  show(byId("invites-ask"), true);
  show(byId("invites-shown"), false);
  byId("invites-text").value = "";
  setText(byId("invites-message"), "");
}

function reveal(campaign) {
  show(byId("invites-ask"), false);
  show(byId("invites-shown"), true);
  setText(byId("invites-text-label"), plural(codes.length, "invite"));
  list(campaign);
  byId("invites-copy").focus();
}

/** All codes, or links with the code in the fragment, which browsers send to no server. */
function lines(campaign) {
  if (!byId("invites-links").checked) return codes;
  return codes.map(
    (code) => `${location.origin}/campaigns/${campaign}/report#invite=${encodeURIComponent(code)}`,
  );
}

function list(campaign) {
  const all = lines(campaign);
  byId("invites-text").value = all.slice(0, MOST_SHOWN).join("\n");
  show(byId("invites-more"), all.length > MOST_SHOWN);
  setText(
    byId("invites-more"),
    `The first ${count(MOST_SHOWN)} are shown; copy and download take all.`,
  );
}

async function copy(campaign) {
  try {
    await navigator.clipboard.writeText(lines(campaign).join("\n"));
    setText(byId("invites-message"), "Copied.");
  } catch {
    byId("invites-text").select();
    setText(
      byId("invites-message"),
      "The browser does not let this page copy: they are selected, copy them by keyboard.",
    );
  }
}
