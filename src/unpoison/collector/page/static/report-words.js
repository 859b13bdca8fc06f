/** Descriptions of a report before it is sent, and of refusals. */

import { NUMBERS, count, epsilon, plural } from "./format.js";

/** The tier with the largest budget that a person allows; undefined if all ask for more. */
export function chosenTier(plan, maxEpsilon) {
  const allowed = [plan, ...(plan.tiers ?? [])].filter((tier) => tier.epsilon <= maxEpsilon);
  return allowed.sort((a, b) => b.epsilon - a.epsilon)[0];
}

export function previewWords({ plan, access }, maxEpsilon) {
  const tier = chosenTier(plan, maxEpsilon);
  if (!tier)
    return `Nothing: the campaign asks for ε = ${epsilon(plan.epsilon)}, which is more than you give.`;
  const proof =
    access === "invite"
      ? "your invite and a random secret of this browser"
      : "a random secret of this browser";
  return `First ${proof}, for a ticket that puts you into a random group. Then ${amount(plan, tier)}, each drawn at random from ${domain(plan)}. ${promise(tier)}`;
}

function amount(plan, tier) {
  const reports = tier.groups.map((group) => group.reports);
  const [least, most] =
    plan.protocol === "baseline" ? [2, 2] : [Math.min(...reports), Math.max(...reports)];
  return least === most
    ? plural(least, "number")
    : `${count(least)} to ${count(most)} numbers (your group says how many)`;
}

const domain = (plan) =>
  plan.categories
    ? `the ${count(plan.categories.length)} categories`
    : `${count(plan.cells)} cells`;

function promise({ epsilon: budget }) {
  const factor = new Intl.NumberFormat(NUMBERS, { maximumSignificantDigits: 3 }).format(
    Math.exp(budget),
  );
  return `Whatever your value is, all of it together is at most ${factor} times as likely to be sent for it as for any other value (ε = ${epsilon(budget)}).`;
}

const REFUSALS = {
  "invalid-invite": "This invite is unknown, or has expired.",
  "invite-used": "This invite was used by another device.",
  "campaign-not-open": "The campaign takes no reports now.",
  "budget-exceeded":
    "This would spend more than you give: here, or over all campaigns of this browser.",
  "rate-limited": "Too many devices report from your network now. Try again later.",
  unavailable:
    "The collector does not answer now. Try again later: the same report is sent, and counts once.",
  storage: "This browser does not let the page write down what it sends, so nothing was sent.",
};

/** Why a report was refused, by the collector or by the client itself. */
export function refusalWords({ code, message }) {
  if (REFUSALS[code]) return REFUSALS[code];
  const sentence = message[0].toUpperCase() + message.slice(1);
  return sentence.endsWith(".") ? sentence : `${sentence}.`;
}
