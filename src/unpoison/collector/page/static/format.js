/**
 * Formats of numbers, in English as the page and the verdicts are, and of times, in the browser's
 * language and time zone. Values of campaigns are written by `value-format.js`.
 */

/** One language for all numbers: 1.234 would be another number in a verdict beside it. */
export const NUMBERS = "en-US";

const whole = new Intl.NumberFormat(NUMBERS, { maximumFractionDigits: 0 });
const budget = new Intl.NumberFormat(NUMBERS, { maximumSignificantDigits: 6 });
const asGiven = new Intl.NumberFormat(NUMBERS, { maximumSignificantDigits: 15 });
const twoDigits = new Intl.NumberFormat(NUMBERS, { maximumSignificantDigits: 2 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const oneDecimal = new Intl.NumberFormat(NUMBERS, {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const oneDigit = new Intl.NumberFormat(NUMBERS, {
  maximumSignificantDigits: 1,
  notation: "compact",
});
const NONE = "–";

export const count = (number) => whole.format(number);
export const epsilon = (number) => budget.format(number);
export const exact = (number) => asGiven.format(number);
export const dateTime = (text) => (text ? moment.format(new Date(text)) : NONE);
export const clockTime = (date) => clock.format(date);

/** A p-value with two digits; one that is tiny as a power of ten, as verdicts write it. */
export const probability = (p) =>
  p && p < 1e-4 ? p.toExponential(1) : twoDigits.format(p);

/** A count with its noun: `plural(1, "user")` is "1 user". */
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** A share as per cent, with one decimal, or one digit where it is tiny. */
export function percent(share) {
  if (share === null || share === undefined) return NONE;
  const small = share !== 0 && Math.abs(share) < 0.0005;
  return `${(small ? oneDigit : oneDecimal).format(100 * share)}\u00a0%`;
}

/** Labels of an axis, with as many decimals as the distance of its ticks needs. */
export function ticks(splits) {
  const step = Math.abs((splits[1] ?? 1) - (splits[0] ?? 0)) || 1;
  const decimals = Math.min(20, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const shown = new Intl.NumberFormat(NUMBERS, { maximumFractionDigits: decimals });
  return splits.map((split) => shown.format(split + 0));
}

/** A moment as the value of a `datetime-local` field, which is in the viewer's time zone. */
export function toLocalField(text) {
  if (!text) return "";
  const date = new Date(text);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The value of a `datetime-local` field as a moment in UTC. */
export function fromLocalField(text) {
  return text ? new Date(text).toISOString().replace(/\.\d+Z$/, "Z") : null;
}

export const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
