/** A polite word to screen readers, seldom: at most one every half minute unless it is urgent. */

import { byId } from "./dom.js";

const QUIET = 30_000;
let last = -Infinity;

export function announce(text, { urgent = false } = {}) {
  if (!urgent && performance.now() - last < QUIET) return false;
  last = performance.now();
  byId("announcement").textContent = text;
  return true;
}
