/** The first page: the list of campaigns, and the form for a new one. */

import { everything, listed, showMore, startAgain } from "./campaign-list.js";
import { startCreateForm } from "./create-form.js";
import { byId, show } from "./dom.js";
import { count, dateTime, percent } from "./format.js";
import { showFreshness } from "./freshness.js";
import { poll } from "./live.js";
import { showRefusal } from "./refusal.js";
import { dataTable } from "./table.js";
import { onToken, startTokenPanel } from "./token-panel.js";
import { token } from "./token.js";
import { findingWord, stateWord } from "./words.js";

/** The list is larger than a status, and changes less. */
const POLL_MILLISECONDS = 4_000;
/** Time after the last key before a search is sent. */
const TYPING_MILLISECONDS = 300;

const table = dataTable({
  id: "campaign-table",
  caption: "Campaigns, newest first",
  stacked: true,
  columns: [
    { title: "Name" },
    { title: "State" },
    { title: "Reported", number: true },
    { title: "Last estimate", number: true },
    { title: "Attackers" },
    { title: "Closes" },
  ],
});

async function refresh() {
  const { campaigns, more = false } = await listed();
  const none = !campaigns.length && everything();
  show(byId("campaigns"), true);
  show(byId("no-campaigns"), none);
  show(byId("list-controls"), !none);
  show(byId("no-match"), !campaigns.length && !none);
  show(byId("list-more"), more);
  show(table.node, campaigns.length > 0);
  table.update(campaigns.map(row));
  if (none && token()) openOnce();
}

function row(campaign) {
  const { id, name, state, enrolled, submissions } = campaign;
  const { min_users: minUsers, closes_at: closes, last_estimate: last } = campaign;
  const few = submissions < minUsers;
  return {
    key: id,
    cells: [
      { text: name, href: `/campaigns/${encodeURIComponent(id)}` },
      { text: stateWord(state), badge: state },
      {
        text: count(submissions),
        note: few ? `${count(minUsers)} needed` : `of ${count(enrolled)} enrolled`,
      },
      { text: last?.answer ?? "–", note: last?.interval ?? "" },
      attackers(last),
      dateTime(closes),
    ],
  };
}

/** The finding of the last estimate, with the share that was found. */
function attackers(last) {
  if (!last?.finding) return { text: "–", badge: "", note: "" };
  const note = last.byzantine_fraction > 0 ? percent(last.byzantine_fraction) : "";
  return { text: findingWord(last.finding), badge: last.finding, note };
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
byId("list-more").addEventListener("click", () => {
  showMore();
  polling.now();
});
let typing = null;
byId("list-controls").addEventListener("input", () => {
  startAgain();
  clearTimeout(typing);
  typing = setTimeout(polling.now, TYPING_MILLISECONDS);
});
onToken(polling.now);
