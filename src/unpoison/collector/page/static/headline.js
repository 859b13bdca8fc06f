/** The headline: estimate, share of attackers, users, and the verdict. */

import { announce } from "./announce.js";
import { byId, setAttribute, setText, show } from "./dom.js";
import { count, percent, plural } from "./format.js";
import { looksForAttackers } from "./methods.js";
import { between, valueFormat } from "./value-format.js";

/** Tone of the box and label, by finding. */
const FINDINGS = {
  found: ["attack", "Attackers found"],
  unclear: ["unclear", "Cannot tell whether somebody attacks"],
  "not-sought": ["plain", "Attackers are not looked for"],
};

let announced = null;

/** Show users so far, and how many are missing before the first estimate. */
export function showProgress(status) {
  const { submissions, enrolled, min_users: minUsers } = status;
  setText(byId("users-value"), count(submissions));
  setText(byId("users-note"), `of ${count(enrolled)} enrolled`);
  const waiting = submissions < minUsers;
  show(byId("waiting"), waiting);
  if (!waiting) return;
  hideEstimate();
  setText(byId("waiting-text"), waitingWords(status));
  setAttribute(byId("waiting-progress"), "value", Math.min(1, submissions / minUsers));
}

function waitingWords({ state, submissions, min_users: minUsers }) {
  const goal = `The estimate appears when ${plural(minUsers, "user")} have reported`;
  if (state === "draft") return `This campaign is a draft: no device can enrol yet. ${goal}.`;
  if (state === "closed")
    return `Closed with ${count(submissions)} of ${plural(minUsers, "user")}: too few to estimate.`;
  return `${goal}: ${count(submissions)} so far, ${count(minUsers - submissions)} to go.`;
}

/** Show an estimate. */
export function showEstimate(plan, estimate) {
  show(byId("estimate-error"), false);
  for (const id of ["estimate-box", "attackers-box", "verdict-box"]) show(byId(id), true);
  const answer = plan.categories ? mostFrequent(estimate) : mean(plan, estimate);
  setText(byId("estimate-name"), answer.name);
  setText(byId("estimate-value"), answer.value);
  setText(byId("estimate-interval"), answer.interval);
  showWorstCase(plan, estimate);
  showAttackers(estimate);
  showVerdict(estimate);
  announceAnswer(answer, estimate);
}

/** Show why there is no estimate, unless the page says the same at its top. */
export function showEstimateError(error) {
  setText(byId("estimate-error"), error.message);
  const elsewhere = [0, 401, 503].includes(error.status) || error.code === "not-enough-users";
  show(byId("estimate-error"), !elsewhere);
}

export function hideEstimate() {
  for (const id of ["estimate-box", "worst-case-box", "attackers-box", "verdict-box"])
    show(byId(id), false);
}

function mean(plan, { mean: value, interval, groups }) {
  const format = valueFormat(plan, interval);
  return {
    name: groups.length ? "Mean of honest users" : "Mean by this method",
    value: format(value),
    interval: interval ? `95 %: ${between(interval, format)}` : "no interval by this method",
  };
}

function mostFrequent({ frequencies, fit }) {
  const [name, share] = Object.entries(frequencies).reduce((most, next) =>
    next[1] > most[1] ? next : most,
  );
  const interval = fit?.frequency_intervals?.[name];
  return {
    name: "Most frequent category",
    value: name,
    interval: `${percent(share)}${interval ? ` (95 %: ${between(interval, percent)})` : ""}`,
  };
}

/** The range that holds whatever attackers send; of categories, that of the most frequent. */
function showWorstCase(plan, estimate) {
  const worst = estimate.worst_case;
  const possible = Boolean(worst) && worst.low !== null;
  show(byId("worst-case-box"), possible);
  if (!possible) return;
  const name = plan.categories ? mostFrequent(estimate).value : null;
  const ends = name ? [worst.low[name], worst.high[name]] : [worst.low, worst.high];
  setText(byId("worst-case-value"), between(ends, name ? percent : valueFormat(plan, estimate.interval)));
  const share = `if at most ${percent(worst.attackers_at_most)} of each group attack`;
  setText(byId("worst-case-share"), share);
}

function showAttackers(estimate) {
  const { fraction, interval } = estimate.byzantine;
  const looked = looksForAttackers(estimate);
  setText(byId("attackers-value"), looked ? percent(fraction) : "–");
  const words = interval ? `95 %: ${between(interval, percent)}` : "no interval by this method";
  setText(byId("attackers-interval"), looked ? words : "not estimated by this method");
}

function showVerdict(estimate) {
  const [tone, label] = judgement(estimate);
  setAttribute(byId("verdict-box"), "data-tone", tone);
  setText(byId("verdict-label"), label);
  const doubt = estimate.converged ? "" : " The fit did not converge: take it with care.";
  setText(byId("verdict"), estimate.verdict + doubt);
}

/** Tone and label of a finding; nobody is called absent beside an interval that allows for many. */
function judgement({ byzantine }) {
  const most = byzantine.interval ? percent(byzantine.interval[1]) : null;
  if (byzantine.finding === "ruled-out") return ["calm", `No attackers found, at most ${most}`];
  if (byzantine.finding === "unclear" && most && !(byzantine.fraction > 0))
    return ["unclear", `Cannot tell: none found, but up to ${most} are not ruled out`];
  return FINDINGS[byzantine.finding];
}

/** Announce an answer that is new, or lies outside the interval that was announced last. */
function announceAnswer({ name, value, interval }, estimate) {
  const [, label] = judgement(estimate);
  const [low, high] = announced?.interval ?? [Infinity, -Infinity];
  const same = announced?.label === label && announced.method === estimate.method;
  const inside =
    estimate.mean === undefined
      ? announced?.value === value
      : estimate.mean >= low && estimate.mean <= high;
  if (same && inside) return;
  const text = `${name}: ${value}, ${interval}. ${label}: ${percent(estimate.byzantine.fraction)}.`;
  if (announce(text, { urgent: !same })) announced = { ...estimate, label, value };
}
