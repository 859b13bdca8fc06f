/** Errors of a form, beside the field that they belong to or at the top. */

import { element, setText, show } from "./dom.js";

/** Remove all errors from a form. */
export function clearErrors(form, top) {
  show(top, false);
  for (const error of form.querySelectorAll(".field-error")) error.remove();
  for (const control of form.querySelectorAll("[aria-invalid]"))
    control.removeAttribute("aria-invalid");
}

/**
 * Show a refusal beside the field that it names, or at the top if that field is missing or hidden,
 * and move the focus there.
 */
export function showError(form, top, { message, field }) {
  const box = fieldBox(form, field);
  if (!box) return showAtTop(top, message);
  const control = box.querySelector("input, select, textarea");
  const id = `${control.id || field}-error`;
  box.append(element("p", { class: "field-error", id }, message));
  control.setAttribute("aria-invalid", "true");
  const described =
    control
      .getAttribute("aria-describedby")
      ?.split(" ")
      .filter((describedBy) => describedBy !== id) ?? [];
  control.setAttribute("aria-describedby", [...described, id].join(" "));
  return control.focus();
}

export function showAtTop(top, message) {
  setText(top, message);
  show(top, true);
  top.focus();
}

/**
 * The box of a field. `issuer.origins.0` belongs to the box of `issuer.origins`; where no box has a
 * path, its names count by themselves: `plan.epsilon` and `body.plan.epsilon` are `epsilon`.
 */
function fieldBox(form, field) {
  const parts = (field ?? "").split(".");
  const paths = parts.map((_, index) => parts.slice(0, parts.length - index).join("."));
  const boxes = [...paths.slice(0, -1), ...parts.reverse()].map(
    (name) => name && form.querySelector(`[data-field="${CSS.escape(name)}"]`),
  );
  return boxes.find((box) => box && box.checkVisibility()) ?? null;
}

/** Make the help text of every field its description for screen readers. */
export function describeFields(root) {
  for (const help of root.querySelectorAll(".field > .help, .pair > .help")) {
    const controls = help.parentElement.querySelectorAll("input, select, textarea");
    if (!controls.length) continue;
    help.id ||= `${controls[0].id}-help`;
    for (const control of controls) {
      const described = control.getAttribute("aria-describedby") ?? "";
      if (!described.includes(help.id))
        control.setAttribute("aria-describedby", `${described} ${help.id}`.trim());
    }
  }
}
