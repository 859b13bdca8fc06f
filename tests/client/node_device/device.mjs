/** A small device in plain JavaScript for Node, as docs/protocol.md describes it; for tests. */
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const B = 2n ** 24n;
const RETRIED = [408, 429, 500, 502, 503, 504];
const FLOATS = ["epsilon", "min_epsilon", "low", "high", "step", "share"];
const INPUTS = { "piecewise-integer": [-1, 2], "square-wave-integer": [0, 1], "k-rr-integer": [] };
const demand = (holds, rule) => { if (!holds) throw new Error(rule); };
const rounded = (x) => (x % 1 === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
const randomWord = () => randomBytes(8).readBigUInt64LE();
export const fingerprint = (plan) => createHash("sha256").update(encoded(plan)).digest("hex");

function exact(budget) { // A whole number of 10^-400: exactly what its decimal text says.
  const [, whole, digits = "", power = "0"] = /^(\d+)(?:\.(\d+))?(?:e(.+))?$/.exec(String(budget));
  return BigInt(whole + digits) * 10n ** BigInt(400 + Number(power) - digits.length);
}

function insideWeight(epsilon) {
  const [p, q] = [exact(epsilon), 10n ** 400n];
  for (let n = 1n, term = 1n, sum = 1n, scale = 1n; ; n += 1n) {
    [term, sum, scale] = [term * p, sum * q * n + term * p, scale * q * n];
    const [rest, floor] = [n * q - p, (B * sum) / scale];
    if (rest > 0n && floor === (B * (sum * rest + term * p)) / (scale * rest)) return floor;
  }
}

function widthAndSpan(mechanism, epsilon) {
  const c = 1 / Math.tanh(epsilon / 4);
  if (mechanism === "piecewise-integer") return [c - 1, 2 * c];
  const [rise, small] = [Math.expm1(epsilon), epsilon < 0.1];
  let [top, bottom] = small ? [0, 0] : [epsilon * Math.exp(epsilon) - rise, rise - epsilon];
  for (let k = 2, factorial = 2; small && k <= 15; k += 1, factorial *= k) {
    top += (epsilon ** (k - 2) * (k - 1)) / factorial;
    bottom += epsilon ** (k - 2) / factorial;
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
  const share = Math.min(Math.max((value - plan.low) / (plan.high - plan.low), 0), 1);
  const snapped = steps ? rounded(share * steps) / steps : share;
  const [low, width] = INPUTS[plan.mechanism];
  const place = (low + snapped * width - low) / width;
  return BigInt(rounded(place * ((cells - window) * 2 ** 32)));
}

export function drawCell(mechanism, value, nextWord = randomWord) {
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

function encoded(item, key) {
  if (Array.isArray(item)) return `[${item.map((part) => encoded(part)).join(", ")}]`;
  if (typeof item === "object")
    return `{${Object.keys(item).sort().map((k) => `"${k}": ${encoded(item[k], k)}`).join(", ")}}`;
  const escaped = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  if (typeof item === "string") return JSON.stringify(item).replace(/[\u007f-\uffff]/g, escaped);
  if (!FLOATS.includes(key)) return String(item);
  const [digits, power] = item.toExponential().split("e");
  if (power >= -4 && power < 16) return String(item) + (Number.isInteger(item) ? ".0" : "");
  return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

async function ask(address, body) {
  const headers = { "Content-Type": "application/json" };
  const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
  for (let wait = 500; wait < 16000; wait *= 2) {
    const answer = await fetch(address, { ...request, redirect: "error" }).catch(() => null);
    if (answer && !RETRIED.includes(answer.status)) {
      const parsed = await answer.json();
      demand(answer.status === 200, parsed.error?.code);
      return parsed;
    }
    await sleep(1000 * Number(answer?.headers.get("Retry-After") ?? 0) + wait * Math.random());
  }
  throw new Error("unavailable");
}

function checkPlan(plan, tiers, policy) {
  const domain = (item) => JSON.stringify([item.low, item.high, item.step, item.categories]);
  demand(plan.mechanism in INPUTS && domain(plan) === domain(policy), "plan-refused");
  for (const { epsilon, groups } of tiers) {
    const costs = groups.map((group) => exact(group.epsilon) * BigInt(group.reports));
    const users = { dap: costs, baseline: [costs.reduce((sum, cost) => sum + cost)] };
    demand(users[plan.protocol]?.every((cost) => cost <= exact(epsilon)), "plan-refused");
  }
}

function cellsOfTicket(ticket, plan, tiers, value) {
  const all = tiers.flatMap(({ groups }, tier) => groups.map((group) => ({ ...group, tier })));
  const count = plan.protocol === "baseline" ? tiers[ticket.tier].groups.length : 1;
  const distinct = new Set(ticket.groups.map(({ group }) => group));
  demand(ticket.groups.length === count && distinct.size === count, "ticket-refused");
  return ticket.groups.flatMap(({ group, reports }) => {
    const { tier, ...own } = all[group] ?? {};
    demand(tier === ticket.tier && own.reports === reports, "ticket-refused");
    const mechanism = mechanismOf(plan, own);
    return Array.from({ length: reports }, () => drawCell(mechanism, value));
  });
}

export async function report({ collector, campaign, invite, value, policy, ledger }) {
  const address = `${collector}/v1/campaigns/${campaign}`;
  const stored = fs.existsSync(ledger) ? JSON.parse(fs.readFileSync(ledger, "utf8")) : {};
  const entry = (stored[address] ??= { device: randomBytes(32).toString("hex") });
  const save = () => fs.writeFileSync(ledger, JSON.stringify(stored), { mode: 0o600, flush: true });
  save();
  if (!entry.values) {
    const { id, plan, access, fingerprint: named } = await ask(address);
    const tiers = [plan, ...(plan.tiers ?? [])];
    checkPlan(plan, tiers, policy);
    demand(id === campaign && named === fingerprint(plan), "plan-refused");
    const budgets = tiers.map(({ epsilon }) => epsilon);
    const tier = budgets.indexOf(Math.max(...budgets.filter((e) => e <= policy.maxEpsilon)));
    demand(tier >= 0, "budget-exceeded");
    const request = { device: entry.device, tier, ...(access === "invite" && { invite }) };
    const ticket = await ask(`${address}/tickets`, request);
    demand(ticket.fingerprint === named && ticket.tier === tier, "ticket-refused");
    const values = cellsOfTicket(ticket, plan, tiers, value);
    Object.assign(entry, { ticket: ticket.ticket, values, epsilon: budgets[tier] });
    save();
  }
  const { device, ticket, values } = entry;
  const { status } = await ask(`${address}/reports`, { device, ticket, values });
  demand(status === "accepted", "answer-refused");
  return entry;
}
