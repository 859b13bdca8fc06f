/** The fields of a campaign by token: who issues the tokens, and for which names of the collector. */

import { show } from "./dom.js";
import { needed } from "./numbers.js";

/** Show the fields of the chosen way in, and no others. */
export function showAccess(form) {
  for (const part of form.querySelectorAll("[data-access]"))
    show(part, part.dataset.access === form.elements.access.value);
}

/** The issuer as a part of the request; other ways in must not have one. */
export function issuer({ elements }) {
  if (elements.access.value !== "token") return {};
  const origins = elements.origins.value.split(/[\s,]+/).filter(Boolean);
  return {
    issuer: {
      name: needed(elements.issuer_name.value, "issuer.name", "Enter the issuer's host."),
      key: needed(elements.issuer_key.value, "issuer.key", "Paste the issuer's public key."),
      ...(origins.length && { origins }),
    },
  };
}
