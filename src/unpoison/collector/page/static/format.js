/** Formats of numbers and times, in the browser's language and time zone. */

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const budget = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 6 });
const asGiven = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 15 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const oneDecimal = new Intl.NumberFormat(undefined, {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const oneDigit = new Intl.NumberFormat(undefined, {
  maximumSignificantDigits: 1,
  notation: "compact",
});
/** Digits of an interval's width that are shown: further ones are noise. */
const DIGITS = 3;
const NONE = "–";

export const count = (number) => whole.format(number);
export const epsilon = (number) => budget.format(number);
export const exact = (number) => asGiven.format(number);
export const dateTime = (text) => (text ? moment.format(new Date(text)) : NONE);
export const clockTime = (date) => clock.format(date);

/** A count with its noun: `plural(1, "user")` is "1 user". */
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** A share as per cent, with one decimal, or one digit where it is tiny. */
export function percent(share) {
  if (share === null || share === undefined) return NONE;
  const small = share !== 0 && Math.abs(share) < 0.0005;
  return `${(small ? oneDigit : oneDecimal).format(100 * share)}\u00a0%`;
}

/**
 * A formatter for values whose interval has this width: it shows no digit below the third of the
 * width, since that would be noise.
 */
export function toWidth(width) {
  if (!(width > 0) || !Number.isFinite(width)) return significant;
  const power = Math.floor(Math.log10(width)) - DIGITS + 1;
  const decimals = Math.min(20, Math.max(0, -power));
  const shown = new Intl.NumberFormat(undefined, {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
  const step = 10 ** Math.max(0, power);
  return (number) => shown.format(Math.round(number / step) * step + 0);
}

const plain = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 5 });
const significant = (number) => plain.format(number);

/** The formatter for a plan's values, by the interval's width or else by a tenth of the range. */
export function valueFormat(plan, interval) {
  if (interval) return toWidth(interval[1] - interval[0]);
  return toWidth((plan.high - plan.low) / 10);
}

/** "44,520 to 50,210" */
export const between = (interval, format) => `${format(interval[0])} to ${format(interval[1])}`;

/** Labels of an axis, with as many decimals as the distance of its ticks needs. */
export function ticks(splits) {
  const step = Math.abs((splits[1] ?? 1) - (splits[0] ?? 0)) || 1;
  const decimals = Math.min(20, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const shown = new Intl.NumberFormat(undefined, { maximumFractionDigits: decimals });
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
