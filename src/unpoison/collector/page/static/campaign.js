/** The page of one campaign: polls its status, and passes it to the parts that show it. */

import { notice, showActions, startActions } from "./actions.js";
import { showActivity } from "./activity.js";
import { announce } from "./announce.js";
import { ask, campaignPath } from "./api.js";
import { showDistribution } from "./distribution.js";
import { byId, element, setAttribute, setText, show } from "./dom.js";
import { estimateFeed } from "./estimate-feed.js";
import { describeFields } from "./field-errors.js";
import { zone } from "./format.js";
import { showFreshness } from "./freshness.js";
import { showFrequencies } from "./frequencies.js";
import { showGroups } from "./groups.js";
import { hideEstimate, showEstimate, showEstimateError, showProgress } from "./headline.js";
import { showHistograms } from "./histograms.js";
import { showHistory } from "./history.js";
import { poll } from "./live.js";
import { methodsFor, statisticsFor } from "./methods.js";
import { showOnset } from "./onset.js";
import { showPlan, startDownloads } from "./plan-view.js";
import { demandToken, showRefusal } from "./refusal.js";
import { showRejections } from "./rejections.js";
import { onToken, startTokenPanel } from "./token-panel.js";
import { accessWord, closingWord, stateWord } from "./words.js";

/** The collector reads a status at most once a second; more polling would show nothing new. */
const POLL_MILLISECONDS = 2_000;
/** A status takes milliseconds: one that takes this long will not come. */
const TIMEOUT_MILLISECONDS = 15_000;
/** Where the form leaves a message for the page of the campaign that it created. */
const NOTICE_KEY = "unpoison-notice";

const campaign = document.body.dataset.campaign;
let status = null;

const feed = estimateFeed(campaign, { onEstimate: showEstimateParts, onError: showEstimateFault });

async function refresh() {
  const latest = await ask(campaignPath(campaign, "/status"), { timeout: TIMEOUT_MILLISECONDS });
  if (latest.version !== status?.version) showStatus(latest);
  feed.update(status);
}

function showStatus(latest) {
  const before = status?.state;
  status = latest;
  if (before && before !== status.state)
    announce(`The campaign is now ${status.state}.`, { urgent: true });
  setText(byId("campaign-name"), status.name);
  document.title = `${status.name} · unpoison`;
  showFacts();
  showActions(status);
  show(byId("campaign"), true);
  showProgress(status);
  offerMethods();
  for (const part of [showOnset, showGroups, showActivity, showRejections, showPlan]) part(status);
  showHistory(status, byId("method").value);
}

function showFacts() {
  show(byId("campaign-facts"), true);
  setText(byId("campaign-state"), stateWord(status.state));
  setAttribute(byId("campaign-state"), "data-state", status.state);
  setText(byId("campaign-access"), accessWord(status.access));
  setText(byId("campaign-closes"), closingWord(status));
  show(byId("report-link"), status.state === "open");
}

/** Fill the choice of method and statistic, once the plan is known. */
function offerMethods() {
  show(byId("methods"), status.submissions >= status.min_users);
  if (byId("method").options.length) return;
  for (const [id, offers] of [
    ["method", methodsFor(status.plan)],
    ["statistic", statisticsFor(status.plan)],
  ]) {
    byId(id).append(...offers.map(([value, words]) => element("option", { value }, words)));
    byId(id).addEventListener("change", choose);
  }
  choose();
}

function choose() {
  byId("headline").setAttribute("aria-busy", "true");
  feed.choose(`method=${encodeURIComponent(byId("method").value)}&${byId("statistic").value}`);
  showHistory(status, byId("method").value);
}

function showEstimateParts(estimate) {
  byId("headline").removeAttribute("aria-busy");
  showEstimate(status.plan, estimate);
  showFrequencies(estimate);
  showDistribution(status.plan, estimate);
  showHistograms(status.plan, estimate);
}

function showEstimateFault(error) {
  byId("headline").removeAttribute("aria-busy");
  showEstimateError(error);
  if (error.status === 422 || error.code === "not-enough-users") {
    hideEstimate();
    for (const id of ["frequencies", "distribution", "histograms"]) show(byId(id), false);
  }
}

function onState(state, error) {
  showFreshness(state, error);
  showRefusal(state === "stopped" ? error : null);
  if (state === "stopped") show(byId("campaign"), false);
  else if (status) show(byId("campaign"), true);
}

function showStoredNotice() {
  const words = sessionStorage.getItem(NOTICE_KEY);
  sessionStorage.removeItem(NOTICE_KEY);
  if (words) notice(words);
}

startTokenPanel();
const polling = poll(refresh, { every: POLL_MILLISECONDS, onState });
startActions(campaign, { onChange: polling.now, onRefused: demandToken });
startDownloads(campaign, demandToken);
onToken(() => {
  if (status) showActions(status);
  polling.now();
});
byId("history-range").addEventListener("change", () => showHistory(status, byId("method").value));
for (const node of document.querySelectorAll(".zone")) node.textContent = zone();
describeFields(document);
showStoredNotice();
