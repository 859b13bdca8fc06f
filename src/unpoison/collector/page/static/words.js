/** Labels for the codes in the collector's JSON. */

import { count, dateTime, epsilon, exact, plural } from "./format.js";

const STATES = { draft: "Draft", open: "Open", closed: "Closed" };

const ACCESS = {
  invite: "Devices with an invite",
  open: "Any device",
  token: "Devices with a token",
};

const MECHANISMS = {
  "piecewise-integer": "Piecewise, on whole numbers",
  "square-wave-integer": "Square wave, on whole numbers",
  "k-rr-integer": "k-ary randomised response, on whole numbers",
};

const PROTOCOLS = {
  dap: "Each user in one group",
  baseline: "Baseline: each user reports once in both groups",
};

const CAUSES = {
  "campaign-not-open": "Campaign not open",
  "invalid-invite": "Unknown or expired invite",
  "invalid-request": "Malformed request",
  "invalid-ticket": "Forged or foreign ticket",
  "invalid-token": "No valid token of the issuer",
  "invite-used": "Invite used by another device",
  "out-of-domain": "Value outside the plan's cells",
  "rate-limited": "Too many requests",
  "ticket-expired": "Ticket expired",
  "ticket-used": "Second, different report for a ticket",
  "token-used": "Token used by another device",
  "too-large": "Request too large",
  "too-slow": "Request too slow",
  "unknown-tier": "Unknown tier",
  "unsupported-media-type": "Not sent as JSON",
  "wrong-number-of-values": "Wrong number of values",
};

const FINDINGS = {
  found: "Attackers",
  "ruled-out": "None",
  unclear: "Cannot tell",
  "not-sought": "Not looked for",
};

const labelOf = (words, code) => words[code] ?? code;

export const stateWord = (state) => labelOf(STATES, state);
export const findingWord = (finding) => labelOf(FINDINGS, finding);
export const accessWord = (access) => labelOf(ACCESS, access);
export const causeWord = (cause) => labelOf(CAUSES, cause);

export function closingWord({ state, closes_at: closes }) {
  if (state === "closed") return closes ? `Closing time ${dateTime(closes)}` : "";
  return closes ? `Closes ${dateTime(closes)}` : "No closing time";
}

/** What a device may report: a range, or how many categories. */
function domain(plan) {
  if (plan.categories) return plural(plan.categories.length, "category").replace("ys", "ies");
  const steps = plan.step === undefined ? "" : ` in steps of ${exact(plan.step)}`;
  const unit = plan.unit ? ` ${plan.unit}` : "";
  return `${exact(plan.low)} to ${exact(plan.high)}${unit}${steps}`;
}

const groupWord = ({ epsilon: budget, reports }) =>
  `ε\u00a0${epsilon(budget)}\u00a0×\u00a0${count(reports)}`;

/** Groups as "ε 1 × 1, ε 0.5 × 2": the budget of a report, and how many a user sends. */
export const groupWords = (groups) => groups.map(groupWord).join(", ");

/** The plan as pairs of a name and a text. */
export function planFacts(plan, fingerprint) {
  const tiers = (plan.tiers ?? []).map((tier) => [
    `Tier for a budget of ε = ${epsilon(tier.epsilon)}`,
    groupWords(tier.groups),
  ]);
  return [
    ["Mechanism", labelOf(MECHANISMS, plan.mechanism)],
    ["Values", domain(plan)],
    ["Budget of a user", `ε = ${epsilon(plan.epsilon)}`],
    ["Groups", groupWords(plan.groups)],
    ...tiers,
    ["Protocol", labelOf(PROTOCOLS, plan.protocol)],
    ...(plan.cells ? [["Report cells", count(plan.cells)]] : []),
    ["Fingerprint", fingerprint],
  ];
}
