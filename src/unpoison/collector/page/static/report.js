/** The page that reports one value with the browser client. */

import { ask, campaignPath } from "./api.js";
import { report } from "./client.js";
import { attempt, whileBusy } from "./dialogs.js";
import { byId, element, setText, show } from "./dom.js";
import { clearErrors, describeFields, showError } from "./field-errors.js";
import { dateTime, epsilon, exact, plural } from "./format.js";
import { FieldError, needed, number } from "./numbers.js";
import { chosenTier, previewWords, refusalWords } from "./report-words.js";
import { takeFromFragment } from "./token.js";

const id = document.body.dataset.campaign;
const form = byId("report-form");
const top = byId("report-error");
/** The field that a refusal is shown beside. */
const FIELD_BY_CODE = {
  "invalid-value": "value",
  "invalid-invite": "invite",
  "invite-used": "invite",
  "budget-exceeded": "epsilon",
};

/** This page may ask no other server, so it cannot fetch a token. */
const TOKEN_WORDS =
  "Devices need a token for this campaign. Report with the application that your account is for.";

let campaign = null;

async function start() {
  takeInvite();
  addEventListener("hashchange", takeInvite);
  await attempt(
    async () => (campaign = await ask(campaignPath(id))),
    (error) => refuse(error.message),
  );
  if (!campaign) return;
  setText(byId("campaign-name"), campaign.name);
  document.title = `${campaign.name} · report`;
  if (campaign.state !== "open") refuse(closedWords());
  else if (campaign.access === "token") refuse(TOKEN_WORDS);
  else offerForm();
}

function takeInvite() {
  const invite = takeFromFragment("invite");
  if (invite) byId("report-invite").value = invite;
}

const closedWords = () =>
  campaign.state === "draft"
    ? "This campaign has not begun yet."
    : "This campaign is closed. It takes no more reports.";

function refuse(words) {
  setText(byId("refused"), words);
  show(byId("refused"), true);
}

function offerForm() {
  const { plan, closes_at: closes } = campaign;
  setText(
    byId("report-lead"),
    `Report one value to this campaign, once.${closes ? ` It is open until ${dateTime(closes)}.` : ""}`,
  );
  show(byId("report-number-field"), !plan.categories);
  show(byId("report-category-field"), Boolean(plan.categories));
  show(byId("report-invite-field"), campaign.access === "invite");
  if (plan.categories) offerCategories(plan.categories);
  else
    setText(byId("report-range"), rangeWords(plan));
  setText(
    byId("report-epsilon-help"),
    `This campaign asks for ε = ${epsilon(plan.epsilon)}${smallerTiers(plan)}. Smaller is more private. Over all campaigns this browser gives at most 8.`,
  );
  describeFields(form);
  form.addEventListener("input", preview);
  form.addEventListener("submit", submit);
  preview();
  show(byId("report"), true);
}

function rangeWords({ low, high, step, unit }) {
  const range = `A number from ${exact(low)} to ${exact(high)}${unit ? ` ${unit}` : ""}`;
  if (step === undefined) return `${range}; one outside counts as the nearest end.`;
  return `${range} in steps of ${exact(step)}; any other counts as the nearest of these.`;
}

const smallerTiers = ({ tiers = [] }) =>
  tiers.length ? `, or less: ${tiers.map((tier) => epsilon(tier.epsilon)).join(", ")}` : "";

function offerCategories(categories) {
  const empty = element("option", { value: "" }, "Choose one");
  byId("report-category").append(
    empty,
    ...categories.map((name, index) => element("option", { value: index }, name)),
  );
}

const preview = () =>
  setText(byId("report-preview"), previewWords(campaign, Number(byId("report-epsilon").value)));

async function submit(event) {
  event.preventDefault();
  clearErrors(form, top);
  await whileBusy(event.submitter, () => attempt(send, refused));
}

async function send() {
  const { plan } = campaign;
  const maxEpsilon = number(byId("report-epsilon").value, "epsilon");
  const domain = plan.categories
    ? { categories: plan.categories }
    : { low: plan.low, high: plan.high, step: plan.step };
  const entered = { value: value(plan), invite: invite() };
  if (!chosenTier(plan, maxEpsilon))
    throw new FieldError(
      "epsilon",
      `This campaign asks for more: ε = ${epsilon(plan.epsilon)}. Nothing was sent.`,
    );
  showReceipt(
    await report({
      collector: location.origin,
      campaign: id,
      ...entered,
      policy: { maxEpsilon, ...domain },
    }),
  );
}

function value(plan) {
  if (plan.categories)
    return plan.categories[
      Number(needed(byId("report-category").value, "category", "Choose a category."))
    ];
  return number(byId("report-number").value, "value");
}

function invite() {
  if (campaign.access !== "invite") return undefined;
  return needed(
    byId("report-invite").value,
    "invite",
    "Enter the invite code that you were given.",
  );
}

function refused(error) {
  showError(form, top, {
    message: refusalWords(error),
    field: error.field ?? FIELD_BY_CODE[error.code],
  });
}

function showReceipt(receipt) {
  show(form, false);
  show(byId("receipt"), true);
  if (receipt.already) setText(byId("receipt-title"), "This browser has reported before");
  setText(
    byId("receipt-text"),
    receipt.already
      ? "Nothing was sent now: a device reports once in a campaign."
      : "You can close this page. Reporting again in this campaign would send nothing new.",
  );
  const facts = [
    ["Group", receipt.groups.join(", ")],
    ["Sent", plural(receipt.reports, "noisy cell number")],
    ["Privacy budget spent", `ε = ${receipt.epsilon}`],
    ["Spent by this browser in all", `ε = ${receipt.spent}`],
  ];
  for (const [name, words] of facts)
    byId("receipt-facts").append(element("dt", {}, name), element("dd", {}, words));
  byId("receipt").focus();
}

start();
