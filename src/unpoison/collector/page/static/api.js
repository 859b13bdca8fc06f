/** Questions to the collector: JSON in, JSON out, one shape of error. */

import { token } from "./token.js";

const PATIENCE = 60_000;

/** What the collector refused, in its own words; status 0 if it could not be reached at all. */
export class ApiError extends Error {
  constructor(status, { code = "unknown", message, field = null }, retryAfter = 0) {
    super(message);
    Object.assign(this, { status, code, field, retryAfter });
  }
}

const UNREACHABLE = { code: "unreachable", message: "The collector cannot be reached." };

/** The parsed answer, or null where there is none (204). */
export async function ask(path, { method = "GET", body, patience = PATIENCE } = {}) {
  const answer = await send(path, { method, body, patience });
  if (answer.status === 204) return null;
  try {
    return await answer.json();
  } catch {
    throw new ApiError(0, UNREACHABLE);
  }
}

export const post = (path, body = {}) => ask(path, { method: "POST", body });

export const campaignPath = (campaign, rest = "") =>
  `/v1/campaigns/${encodeURIComponent(campaign)}${rest}`;

/** Fetch a file with the token, and hand it to the browser under a name. */
export async function download(path, name) {
  const answer = await send(path, { method: "GET", patience: 10 * PATIENCE });
  saveAs(await answer.blob(), name);
}

export function saveAs(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function send(path, { method, body, patience }) {
  const answer = await reach(path, {
    method,
    headers: headers(body),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-cache",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
    signal: AbortSignal.timeout(patience),
  });
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

function headers(body) {
  const given = { Accept: "application/json" };
  if (body !== undefined) given["Content-Type"] = "application/json";
  if (token()) given.Authorization = `Bearer ${token()}`;
  return given;
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new ApiError(0, UNREACHABLE);
  }
}

async function refusal(answer) {
  const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
  const fallback = { message: `The collector answered with status ${answer.status}.` };
  const body = await answer.json().catch(() => null);
  return new ApiError(answer.status, body?.error ?? fallback, retryAfter);
}
