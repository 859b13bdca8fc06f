/**
 * Asking again and again: every two seconds while somebody looks, not at all while the tab is
 * hidden, ever more rarely while the collector does not answer.
 */

const SLOWEST = 60_000;

/**
 * Call `ask` until stopped. `onState` hears "live", "trouble" (with the error) or "stopped" (an
 * answer that asking again will not change: no right, no such campaign). Returns `now` and `stop`.
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
    if ([401, 403, 404].includes(error.status)) {
      stopped = true;
      onState("stopped", error);
      return every;
    }
    failures += 1;
    onState("trouble", error);
    const backOff = Math.min(SLOWEST, every * 2 ** failures);
    return Math.max(backOff, 1000 * (error.retryAfter ?? 0)) * (0.8 + 0.4 * Math.random());
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden && !stopped) now();
  });
  now();
  return { now, stop: () => ((stopped = true), clearTimeout(timer)) };
}
