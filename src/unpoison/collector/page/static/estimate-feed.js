/** Decides when to fetch an estimate: after counts changed, and at most every five seconds. */

import { ask, campaignPath } from "./api.js";

/** Milliseconds between requests: an estimate costs the collector up to seconds of computing. */
const LEAST_PAUSE = 5_000;
/** After failures the pause doubles, up to 80 seconds. */
const MOST_DOUBLINGS = 4;
/** Statuses after which the same request may succeed later. */
const TEMPORARY_STATUSES = [0, 401, 408, 429, 500, 502, 503, 504];

/** `onEstimate(estimate)` or `onError(error)` is called if the choice is still the same. */
export function estimateFeed(campaign, { onEstimate, onError }) {
  let query = null;
  let counts = null;
  let requested = null;
  let last = -Infinity;
  let timer = null;
  let busy = false;
  let failures = 0;

  const wanted = () => `${counts} ${query}`;

  function consider() {
    if (busy || query === null || counts === null || requested === wanted()) return;
    clearTimeout(timer);
    const pause = last + LEAST_PAUSE * 2 ** failures - performance.now();
    timer = setTimeout(fetchNow, Math.max(0, pause));
  }

  async function fetchNow() {
    busy = true;
    last = performance.now();
    requested = wanted();
    const chosen = query;
    try {
      const estimate = await ask(campaignPath(campaign, `/estimate?${chosen}`));
      failures = 0;
      if (chosen === query) onEstimate(estimate);
    } catch (error) {
      if (TEMPORARY_STATUSES.includes(error.status)) requested = null;
      failures = Math.min(failures + 1, MOST_DOUBLINGS);
      if (chosen === query) onError(error);
    }
    busy = false;
    if (chosen !== query) consider();
  }

  return {
    /** Call with every status: fetches if counts have changed, or if the last request failed. */
    update({ submissions, reports, min_users: minUsers }) {
      counts = submissions >= minUsers ? `${submissions} ${reports}` : null;
      consider();
    },
    /** Choose another method or statistic; it is fetched at once, without the pause. */
    choose(chosenQuery) {
      last = -Infinity;
      query = chosenQuery;
      consider();
    },
  };
}
