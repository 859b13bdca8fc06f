/** When to ask for an estimate: after counts changed, and at most every five seconds. */

import { ask, campaignPath } from "./api.js";

const LEAST_PAUSE = 5_000;
const MOST_DOUBLINGS = 4;
const MAY_PASS = [0, 401, 408, 429, 500, 502, 503, 504];

/** `onEstimate(estimate)` and `onError(error)` hear the outcome for what is chosen now. */
export function estimateFeed(campaign, { onEstimate, onError }) {
  let query = null;
  let counts = null;
  let asked = null;
  let last = -Infinity;
  let timer = null;
  let busy = false;
  let failures = 0;

  const wanted = () => `${counts} ${query}`;

  function consider() {
    if (busy || query === null || counts === null || asked === wanted()) return;
    clearTimeout(timer);
    const pause = last + LEAST_PAUSE * 2 ** failures - performance.now();
    timer = setTimeout(fetchNow, Math.max(0, pause));
  }

  async function fetchNow() {
    busy = true;
    last = performance.now();
    asked = wanted();
    const chosen = query;
    try {
      const estimate = await ask(campaignPath(campaign, `/estimate?${chosen}`));
      failures = 0;
      if (chosen === query) onEstimate(estimate);
    } catch (error) {
      if (MAY_PASS.includes(error.status)) asked = null;
      failures = Math.min(failures + 1, MOST_DOUBLINGS);
      if (chosen === query) onError(error);
    }
    busy = false;
    if (chosen !== query) consider();
  }

  return {
    /** A status, new or not: only counts make a new estimate, but a failed question is asked again. */
    heed({ submissions, reports, min_users: least }) {
      counts = submissions >= least ? `${submissions} ${reports}` : null;
      consider();
    },
    /** Somebody chose another method or statistic: do not keep them waiting. */
    choose(given) {
      last = -Infinity;
      query = given;
      consider();
    },
  };
}
