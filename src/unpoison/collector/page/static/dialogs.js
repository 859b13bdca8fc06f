/** Dialogs that ask before something is done, and stay open while it fails. */

import { clearErrors, showError } from "./field-errors.js";

/**
 * Wire a `<dialog>` with a form: `act()` is called when it is confirmed; an error that it throws is
 * shown inside. Returns `open()`.
 */
export function actionDialog(dialog, { prepare = () => {}, act, onRefused }) {
  const form = dialog.querySelector("form");
  const top = form.querySelector(".message.error");
  top.tabIndex = -1;
  for (const button of form.querySelectorAll("[data-cancel]")) {
    button.addEventListener("click", () => dialog.close());
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearErrors(form, top);
    await whileBusy(event.submitter, () => attempt(act, (error) => failed(error)));
  });
  const failed = (error) => {
    if (error.status === 401) dialog.close();
    if (error.status === 401) onRefused(error);
    else showError(form, top, error);
  };
  return () => {
    clearErrors(form, top);
    prepare();
    dialog.showModal();
  };
}

export async function attempt(act, failed) {
  try {
    await act();
  } catch (error) {
    failed(error);
  }
}

/** A button that cannot be pressed twice; it keeps its focus meanwhile. */
export async function whileBusy(button, act) {
  if (button?.getAttribute("aria-disabled") === "true") return;
  button?.setAttribute("aria-disabled", "true");
  try {
    await act();
  } finally {
    button?.removeAttribute("aria-disabled");
  }
}
