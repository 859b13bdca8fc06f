/** Parsing of text fields; an error names its field. */

export class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

/** A number or a fraction, such as 0.5 or 1/16, as on the command line; NaN if it is neither. */
export function parsed(text) {
  const [numerator, denominator = "1", ...surplus] = text.replace(/\s/g, "").split("/");
  if (numerator === "" || denominator === "" || surplus.length) return NaN;
  return Number(numerator) / Number(denominator);
}

export function number(text, field) {
  const value = parsed(text);
  if (!Number.isFinite(value))
    throw new FieldError(field, "Enter a number, such as 0.5 or 1/16 (with a point).");
  return value;
}

export function wholeNumber(text, field) {
  const value = Number(text.trim() || NaN);
  if (!Number.isInteger(value) || value < 1)
    throw new FieldError(field, "Enter a whole number of at least 1.");
  return value;
}

export function needed(text, field, message) {
  if (!text.trim()) throw new FieldError(field, message);
  return text.trim();
}
