/** Requests to the collector's API: JSON in, JSON out, one class of error. */

import { token } from "./token.js";

/** Longest wait for an answer; estimates of large campaigns take seconds. */
const TIMEOUT_MILLISECONDS = 60_000;
/** Longest wait for a file; an export holds all reports that are stored. */
const DOWNLOAD_TIMEOUT_MILLISECONDS = 600_000;

/** A refusal with the collector's message; status 0 if it could not be reached at all. */
export class ApiError extends Error {
  constructor(status, { code = "unknown", message, field = null }, retryAfter = 0) {
    super(message);
    Object.assign(this, { status, code, field, retryAfter });
  }
}

const UNREACHABLE = { code: "unreachable", message: "The collector cannot be reached." };

/** The parsed response, or null where it has no body (204). */
export async function ask(path, { method = "GET", body, timeout = TIMEOUT_MILLISECONDS } = {}) {
  const response = await send(path, { method, body, timeout });
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch {
    throw new ApiError(0, UNREACHABLE);
  }
}

export const post = (path, body = {}) => ask(path, { method: "POST", body });

export const campaignPath = (campaign, suffix = "") =>
  `/v1/campaigns/${encodeURIComponent(campaign)}${suffix}`;

/** Fetch a file with the token, and save it under a name: a link could not send the token. */
export async function download(path, name) {
  const response = await send(path, { method: "GET", timeout: DOWNLOAD_TIMEOUT_MILLISECONDS });
  saveAs(await response.blob(), name);
}

export function saveAs(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // Not at once: the browser begins to read the file after this function has returned.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function send(path, { method, body, timeout }) {
  const response = await reach(path, {
    method,
    headers: headers(body),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-cache",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
    signal: AbortSignal.timeout(timeout),
  });
  if (!response.ok) throw await refusal(response);
  return response;
}

function headers(body) {
  const fields = { Accept: "application/json" };
  if (body !== undefined) fields["Content-Type"] = "application/json";
  if (token()) fields.Authorization = `Bearer ${token()}`;
  return fields;
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new ApiError(0, UNREACHABLE);
  }
}

async function refusal(response) {
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const fallback = { message: `The collector answered with status ${response.status}.` };
  const body = await response.json().catch(() => null);
  return new ApiError(response.status, body?.error ?? fallback, retryAfter);
}
