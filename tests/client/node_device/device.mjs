/** A small device in plain JavaScript for Node, as docs/protocol.md describes it; for tests. */

import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";

const B = 2n ** 24n;
const RETRIED = [408, 429, 500, 502, 503, 504];
const FLOATS = ["epsilon", "min_epsilon", "low", "high", "step", "share"];
const INPUTS = { "piecewise-integer": [-1, 2], "square-wave-integer": [0, 1], "k-rr-integer": [] };

const demand = (holds, rule) => { if (!holds) throw new Error(rule); };

// Budgets are exact fractions [numerator, denominator] of decimal texts.

function exact(number) {
  const [, whole, digits = "", power = "0"] = /^(\d+)(?:\.(\d+))?(?:e(.+))?$/.exec(String(number));
  const shift = Number(power) - digits.length;
  const scale = 10n ** BigInt(Math.abs(shift));
  return shift < 0 ? [BigInt(whole + digits), scale] : [BigInt(whole + digits) * scale, 1n];
}

const total = (budgets) => budgets.reduce(([a, b], [c, d]) => [a * d + c * b, b * d], [0n, 1n]);
const atMost = ([a, b], [c, d]) => a * d <= c * b;
const spentIn = ({ epsilon, reports }) => [exact(epsilon)[0] * BigInt(reports), exact(epsilon)[1]];

// The draw.

function insideWeight(epsilon) {
  const [p, q] = exact(epsilon);
  for (let n = 1n, term = 1n, sum = 1n, scale = 1n; ; n += 1n) {
    [term, sum, scale] = [term * p, sum * q * n + term * p, scale * q * n];
    if (n * q <= p) continue;
    const rest = n * q - p;
    const floor = (B * sum) / scale;
    if (floor === (B * (sum * rest + term * p)) / (scale * rest)) return floor;
  }
}

const rounded = (number) =>
  number % 1 === 0.5 ? 2 * Math.round(number / 2) : Math.round(number);

function widthAndSpan(mechanism, epsilon) {
  const c = 1 / Math.tanh(epsilon / 4);
  if (mechanism === "piecewise-integer") return [c - 1, 2 * c];
  let top = epsilon * Math.exp(epsilon) - Math.expm1(epsilon);
  let bottom = Math.expm1(epsilon) - epsilon;
  if (epsilon < 0.1) {
    top = bottom = 0;
    for (let k = 2, factorial = 2; k <= 15; k += 1, factorial *= k) {
      top += (epsilon ** (k - 2) * (k - 1)) / factorial;
      bottom += epsilon ** (k - 2) / factorial;
    }
  }
  const b = top / (2 * Math.exp(epsilon) * bottom);
  return [2 * b, 1 + b + b];
}

export function mechanismOf(plan, { epsilon }) {
  const cells = plan.categories?.length ?? plan.cells;
  const [width, span] = plan.categories ? [0, 1] : widthAndSpan(plan.mechanism, epsilon);
  const window = Math.min(Math.max(1, rounded((cells * width) / span)), cells - 1);
  const a = insideWeight(epsilon);
  const sum = BigInt(window) * a + BigInt(cells - window) * B;
  demand(sum < 2n ** 53n, "the total weight must be under 2^53");
  return { plan, cells, window, a, sum };
}

export function fixedOffset({ plan, cells, window }, value) {
  if (plan.categories) return BigInt(plan.categories.indexOf(value)) << 32n;
  const steps = plan.step && rounded((plan.high - plan.low) / plan.step);
  let share = Math.min(Math.max((value - plan.low) / (plan.high - plan.low), 0), 1);
  if (steps) share = rounded(share * steps) / steps;
  const [low, width] = INPUTS[plan.mechanism];
  const place = (low + share * width - low) / width;
  return BigInt(rounded(place * ((cells - window) * 2 ** 32)));
}

export function drawCell(mechanism, value, nextWord) {
  const [fixed, window] = [fixedOffset(mechanism, value), BigInt(mechanism.window)];
  const offset = (fixed >> 32n) + (nextWord() >> 32n < fixed % 2n ** 32n ? 1n : 0n);
  const limit = 2n ** 64n - (2n ** 64n % mechanism.sum);
  let word = nextWord();
  while (word >= limit) word = nextWord();
  const weight = word % mechanism.sum;
  if (weight < window * mechanism.a) return Number(offset + weight / mechanism.a);
  const cell = (weight - window * mechanism.a) / B;
  return Number(cell < offset ? cell : cell + window);
}

// Fingerprints: SHA-256 of canonical JSON.

function canonical(item, key) {
  if (Array.isArray(item)) return `[${item.map((part) => canonical(part)).join(", ")}]`;
  if (typeof item === "object")
    return `{${Object.keys(item).sort().map((k) => `"${k}": ${canonical(item[k], k)}`).join(", ")}}`;
  const escaped = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  if (typeof item === "string") return JSON.stringify(item).replace(/[\u007f-\uffff]/g, escaped);
  if (!FLOATS.includes(key)) return String(item);
  const [digits, power] = item.toExponential().split("e");
  if (power >= -4 && power < 16) return String(item) + (Number.isInteger(item) ? ".0" : "");
  return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

export const fingerprint = (plan) => createHash("sha256").update(canonical(plan)).digest("hex");

// The protocol.

async function ask(address, body) {
  const headers = { "Content-Type": "application/json" };
  const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
  for (let wait = 500; ; wait *= 2) {
    const answer = await fetch(address, { ...request, redirect: "error" }).catch(() => null);
    if (answer && !RETRIED.includes(answer.status)) {
      const parsed = await answer.json();
      demand(answer.status === 200, parsed.error?.code);
      return parsed;
    }
    demand(wait < 16000, "unavailable");
    const seconds = Number(answer?.headers.get("Retry-After") ?? 0);
    await new Promise((wake) => { setTimeout(wake, 1000 * seconds + Math.random() * wait); });
  }
}

function checkPlan(plan, tiers, policy) {
  demand(plan.mechanism in INPUTS && ["dap", "baseline"].includes(plan.protocol), "plan-refused");
  const domain = (item) => JSON.stringify([item.low, item.high, item.step, item.categories]);
  demand(domain(plan) === domain(policy), "plan-refused");
  for (const { epsilon, groups } of tiers) {
    const spending = groups.map(spentIn);
    const users = plan.protocol === "baseline" ? [total(spending)] : spending;
    demand(users.every((user) => atMost(user, exact(epsilon))), "plan-refused");
  }
}

export async function report({ collector, campaign, invite, value, policy, ledger }) {
  const address = `${collector}/v1/campaigns/${campaign}`;
  const entries = fs.existsSync(ledger) ? JSON.parse(fs.readFileSync(ledger, "utf8")) : {};
  const save = (entry) => {
    entries[address] = { ...entries[address], ...entry };
    fs.writeFileSync(ledger, JSON.stringify(entries), { mode: 0o600, flush: true });
    return entries[address];
  };
  let entry = entries[address] ?? save({ device: randomBytes(32).toString("hex") });
  if (!entry.values) {
    const { id, plan, access, fingerprint: named } = await ask(address);
    const tiers = [plan, ...(plan.tiers ?? [])];
    checkPlan(plan, tiers, policy);
    demand(id === campaign && named === fingerprint(plan), "plan-refused");
    const budgets = tiers.map(({ epsilon }) => epsilon);
    const tier = budgets.indexOf(Math.max(...budgets.filter((e) => e <= policy.maxEpsilon)));
    demand(tier >= 0, "budget-exceeded");
    const proof = access === "invite" ? { invite } : {};
    const ticket = await ask(`${address}/tickets`, { device: entry.device, tier, ...proof });
    demand(ticket.fingerprint === named && ticket.tier === tier, "ticket-refused");
    const first = tiers.slice(0, tier).reduce((count, { groups }) => count + groups.length, 0);
    const values = ticket.groups.flatMap(({ group, reports }) => {
      const own = tiers[tier].groups[group - first];
      demand(own?.reports === reports, "ticket-refused");
      const mechanism = mechanismOf(plan, own);
      const word = () => randomBytes(8).readBigUInt64LE();
      return Array.from({ length: reports }, () => drawCell(mechanism, value, word));
    });
    const count = plan.protocol === "baseline" ? tiers[tier].groups.length : 1;
    const distinct = new Set(ticket.groups.map(({ group }) => group)).size;
    demand(ticket.groups.length === count && distinct === count, "ticket-refused");
    entry = save({ ticket: ticket.ticket, values, epsilon: budgets[tier] });
  }
  const { device, ticket, values } = entry;
  const answer = await ask(`${address}/reports`, { device, ticket, values });
  demand(answer.status === "accepted", "answer-refused");
  return entry;
}
