/** Announcements to screen readers: at most one every half minute, unless it is urgent. */

import { byId } from "./dom.js";

/** Milliseconds between announcements: estimates change faster than anybody can listen. */
const QUIET_MILLISECONDS = 30_000;
let last = -Infinity;

/** Returns whether it was announced. */
export function announce(text, { urgent = false } = {}) {
  if (!urgent && performance.now() - last < QUIET_MILLISECONDS) return false;
  last = performance.now();
  byId("announcement").textContent = text;
  return true;
}
