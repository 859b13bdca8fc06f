/** The plan in words and as JSON, and downloads. */

import { campaignPath, download, saveAs } from "./api.js";
import { byId, element, setText } from "./dom.js";
import { planFacts } from "./words.js";

let plan = null;

export function showPlan(status) {
  if (plan) return;
  ({ plan } = status);
  for (const [name, words] of planFacts(plan, status.fingerprint)) {
    byId("plan-facts").append(element("dt", {}, name), element("dd", {}, words));
  }
  setText(byId("plan-json"), JSON.stringify(plan, null, 2));
}

export function startDownloads(campaign, onRefused) {
  const offer = (id, suffix, name) =>
    byId(id).addEventListener("click", () =>
      fetchFile(campaignPath(campaign, suffix), name, onRefused),
    );
  offer("download-summary", "/summary", `${campaign}.summary`);
  offer("download-export", "/export", `${campaign}.zip`);
  byId("download-plan").addEventListener("click", () => {
    saveAs(
      new Blob([`${JSON.stringify(plan, null, 2)}\n`], { type: "application/json" }),
      `${campaign}.plan.json`,
    );
  });
}

async function fetchFile(path, name, onRefused) {
  const message = byId("download-message");
  setText(message, "Fetching the file.");
  try {
    await download(path, name);
    setText(message, `Saved as ${name}.`);
  } catch (error) {
    setText(message, error.message);
    if (error.status === 401) onRefused(error);
  }
}
