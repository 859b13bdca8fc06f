/** The first page: the list of campaigns, and the form for a new one. */

import { ask } from "./api.js";
import { startCreateForm } from "./create-form.js";
import { byId, show } from "./dom.js";
import { count, dateTime } from "./format.js";
import { showFreshness } from "./freshness.js";
import { poll } from "./live.js";
import { showRefusal } from "./refusal.js";
import { dataTable } from "./table.js";
import { onToken, startTokenPanel } from "./token-panel.js";
import { token } from "./token.js";
import { stateWord } from "./words.js";

/** The list is larger than a status, and changes less. */
const POLL_MILLISECONDS = 4_000;
const TIMEOUT_MILLISECONDS = 15_000;

const table = dataTable({
  id: "campaign-table",
  caption: "Campaigns, newest first",
  stacked: true,
  columns: [
    { title: "Name" },
    { title: "State" },
    { title: "Enrolled", number: true },
    { title: "Reported", number: true },
    { title: "Closes" },
  ],
});

async function refresh() {
  const { campaigns } = await ask("/v1/campaigns", { timeout: TIMEOUT_MILLISECONDS });
  show(byId("campaigns"), true);
  show(byId("no-campaigns"), !campaigns.length);
  show(table.node, campaigns.length > 0);
  table.update(campaigns.map(row));
  if (!campaigns.length && token()) openOnce();
}

function row(campaign) {
  const { id, name, state, enrolled, submissions } = campaign;
  const { min_users: minUsers, closes_at: closes } = campaign;
  const few = submissions < minUsers;
  return {
    key: id,
    cells: [
      { text: name, href: `/campaigns/${encodeURIComponent(id)}` },
      { text: stateWord(state), badge: state },
      count(enrolled),
      { text: count(submissions), note: few ? `${count(minUsers)} needed` : "" },
      dateTime(closes),
    ],
  };
}

/** Unfold the form, once, for an operator who has no campaign yet. */
const openOnce = (() => {
  let opened = false;
  return () => {
    if (!opened) byId("create").open = true;
    opened = true;
  };
})();

function onState(state, error) {
  showFreshness(state, error);
  showRefusal(state === "stopped" ? error : null);
  if (state === "stopped") show(byId("campaigns"), false);
}

startTokenPanel();
byId("campaign-list").append(table.node);
const polling = poll(refresh, { every: POLL_MILLISECONDS, onState });
startCreateForm();
onToken(polling.now);
