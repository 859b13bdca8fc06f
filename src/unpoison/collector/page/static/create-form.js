/** The form that creates a campaign. */

import { post } from "./api.js";
import { attempt, whileBusy } from "./dialogs.js";
import { byId, setText, show } from "./dom.js";
import { clearErrors, describeFields, showAtTop, showError } from "./field-errors.js";
import { fromLocalField, zone } from "./format.js";
import { previewGroups } from "./group-preview.js";
import { issuer, showAccess } from "./issuer-fields.js";
import { FieldError, needed, number, wholeNumber } from "./numbers.js";
import { demandToken } from "./refusal.js";
import { onToken } from "./token-panel.js";
import { token } from "./token.js";

const form = byId("create-form");
const top = byId("create-error");
const field = (name) => form.elements[name];

export function startCreateForm() {
  describeFields(form);
  form.querySelector(".zone").textContent = zone();
  form.addEventListener("change", showChosen);
  form.addEventListener("input", showPreview);
  form.addEventListener("submit", submit);
  onToken(showTokenNote);
  showTokenNote();
  showChosen();
  showPreview();
}

const showTokenNote = () => show(byId("create-token-note"), !token());

/** Show the fields that belong to what was chosen. */
function showChosen() {
  const kind = field("kind").value;
  for (const part of form.querySelectorAll("[data-kind]")) {
    show(part, part.dataset.kind.split(" ").includes(kind));
  }
  showAccess(form);
}

const showPreview = () =>
  setText(byId("group-preview"), previewGroups(field("epsilon").value, field("min_epsilon").value));

async function submit(event) {
  event.preventDefault();
  clearErrors(form, top);
  await whileBusy(event.submitter, () => attempt(create, refused));
}

async function create() {
  const created = await post("/v1/campaigns", requestBody());
  const next =
    created.state === "draft"
      ? "Open it when you are ready."
      : "It is open: devices can enrol and report.";
  const note = created.notice ? ` Note: ${created.notice.replace(/\.$/, "")}.` : "";
  sessionStorage.setItem("unpoison-notice", `Created.${note} ${next}`);
  location.assign(`/campaigns/${encodeURIComponent(created.id)}`);
}

function refused(error) {
  if (error.status === 401) {
    showAtTop(top, "The collector creates campaigns for its operators only.");
    demandToken();
  } else {
    showError(form, top, error);
  }
}

function requestBody() {
  return {
    name: needed(field("name").value, "name", "Enter a name."),
    plan: plan(),
    access: field("access").value,
    ...issuer(form),
    min_users: wholeNumber(field("min_users").value, "min_users"),
    closes_at: closingTime(),
    open: field("open").checked,
  };
}

function plan() {
  if (field("kind").value === "plan") return pastedPlan();
  const budgets = {
    epsilon: number(field("epsilon").value, "epsilon"),
    ...optional("min_epsilon"),
  };
  if (field("kind").value === "categories")
    return { mechanism: "k-rr-integer", ...budgets, categories: categories() };
  return {
    mechanism: field("mechanism").value,
    ...budgets,
    low: number(field("low").value, "low"),
    high: number(field("high").value, "high"),
    ...optional("step"),
    ...(field("unit").value.trim() && { unit: field("unit").value.trim() }),
  };
}

/** A number under the name of its field, unless that is empty. */
function optional(name) {
  const text = field(name).value;
  return text.trim() ? { [name]: number(text, name) } : {};
}

function categories() {
  const names = field("categories")
    .value.split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  if (names.length < 2)
    throw new FieldError("categories", "Enter at least two categories, one on each line.");
  return names;
}

function pastedPlan() {
  const text = needed(field("plan").value, "plan", "Paste a plan.");
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new FieldError("plan", `This is not JSON: ${error.message}`);
  }
}

function closingTime() {
  const closes = field("closes_at");
  if (closes.validity.badInput)
    throw new FieldError("closes_at", "Enter a full date and time, or none.");
  return fromLocalField(closes.value);
}
