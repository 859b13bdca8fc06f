/**
 * Polling: regular while the tab is visible, none while it is hidden, with pauses that double while
 * the collector does not answer.
 */

/** Milliseconds; a collector that returns is noticed within a minute. */
const LONGEST_PAUSE = 60_000;
/** Answers that asking again does not change: no permission, no such campaign. */
const FINAL_STATUSES = [401, 403, 404];

/**
 * Call `ask` until stopped. `onState` is called with "live", with "trouble" and the error, or with
 * "stopped" and an error that is final. Returns `now` and `stop`.
 */
export function poll(ask, { every, onState }) {
  let timer = null;
  let failures = 0;
  let busy = false;
  let again = false;
  let stopped = false;

  const wait = (milliseconds) => {
    clearTimeout(timer);
    if (!stopped && !document.hidden) timer = setTimeout(now, milliseconds);
  };

  async function now() {
    stopped = false;
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    clearTimeout(timer);
    const pause = await attempt();
    busy = false;
    wait(again ? 0 : pause);
    again = false;
  }

  async function attempt() {
    try {
      await ask();
      failures = 0;
      onState("live");
      return every;
    } catch (error) {
      return failed(error);
    }
  }

  function failed(error) {
    if (FINAL_STATUSES.includes(error.status)) {
      stopped = true;
      onState("stopped", error);
      return every;
    }
    failures += 1;
    onState("trouble", error);
    const backOff = Math.min(LONGEST_PAUSE, every * 2 ** failures);
    // Random, so that pages which lost the collector together do not return together.
    return Math.max(backOff, 1000 * (error.retryAfter ?? 0)) * (0.8 + 0.4 * Math.random());
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden && !stopped) now();
  });
  now();
  return { now, stop: () => ((stopped = true), clearTimeout(timer)) };
}
