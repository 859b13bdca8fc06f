/**
 * Numbers in natural units, with digits by the width of an interval: the same rule as in
 * `unpoison.estimate.value_format`, which writes the verdict. English, as the verdict is.
 */

/** Digits of an interval's width that are shown: further ones are noise. */
const DIGITS_OF_WIDTH = 3;
/** Without an interval, digits are those of one as wide as this part of the range. */
const PART_OF_RANGE = 100;
/** An interval narrower than this share of the range is taken as none: that is rounding error. */
const LEAST_WIDTH = 1e-9;
/** With more decimals than this, a number is written with a power of ten. */
const MOST_DECIMALS = 12;
/** From here on a number is written with a power of ten: a number has no more than 15 digits. */
const LARGEST_WHOLE = 1e15;
/** Decimals before a power of ten, at most. */
const MOST_DIGITS = 15;

/**
 * The format of values of a plan whose interval is given, or else of any values of the plan: a
 * function that writes a number with the plan's unit; its `number` writes it without.
 */
export function valueFormat({ low, high, unit }, interval) {
  const range = high - low;
  const given = interval ? interval[1] - interval[0] : 0;
  const usable = given > LEAST_WIDTH * range && Number.isFinite(given);
  const place = exponent(usable ? given : range / PART_OF_RANGE) - DIGITS_OF_WIDTH + 1;
  const number = (value) => written(value, place);
  const format = (value) => `${number(value)}${unit ? ` ${unit}` : ""}`;
  return Object.assign(format, { number, unit });
}

/** "44,523 to 50,211 s": two ends by a format, with the unit once. */
export const between = (interval, format) =>
  `${(format.number ?? format)(interval[0])} to ${format(interval[1])}`;

/** The power of ten of a number's first digit; a logarithm may be off by one. */
const exponent = (number) => Number(number.toExponential().split("e")[1]);

function written(value, place) {
  if (place >= -MOST_DECIMALS && Math.abs(value) < LARGEST_WHOLE)
    return grouped(value.toFixed(Math.max(0, -place)));
  if (value === 0) return "0";
  return value.toExponential(Math.min(MOST_DIGITS, Math.max(0, exponent(value) - place)));
}

/** A number's text with commas between thousands, and zero without a sign. */
function grouped(text) {
  const [whole, fraction] = (/[1-9]/.test(text) ? text : text.replace("-", "")).split(".");
  const commas = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? commas : `${commas}.${fraction}`;
}
