/**
 * Reports one value to an unpoison collector under local differential privacy, from a browser.
 *
 *     import { report } from "/client.js";
 *     await report({ campaign: "k3v9x2m4q7w1", value: 28800, policy: { low: 0, high: 86400 } });
 *
 * The collector is not trusted. Its plan and ticket are checked against the page's own policy, the
 * report is drawn here in integer arithmetic, and what was drawn and spent is stored before
 * anything is sent. The value itself never leaves this file.
 */

// Weight of a cell outside the window (b); inside it is ⌊b·e^ε⌋, and a larger b loses less of e^ε.
const OUTSIDE_WEIGHT = 2n ** 24n;
// Of a window's offset: rounding to 2^-32 of a cell is far below the noise.
const FRACTION_BITS = 32n;
// How many different words the generator returns.
const WORD_COUNT = 2n ** 64n;
// Bound on the sum of all weights, as in Python: less than one word in 2,048 is drawn again.
const TOTAL_LIMIT = 2n ** 53n;
// Bounds on what a collector may ask for; the same as in Python.
const MIN_EPSILON = 1e-4;
const MAX_EPSILON = 16;
const MAX_CELLS = 2 ** 20;
const MAX_GROUPS = 64;
const MAX_STEPS = 2 ** 32;
const MAX_TICKET_LENGTH = 4096;
// How far steps may be from a whole number, as a fraction: decimals such as 0.1 are rounded.
const WHOLE_STEPS = 1e-9;
const LEDGER = "unpoison-ledger";
// Of the ledger's JSON; another version is refused, because it might hide what was spent.
const LEDGER_VERSION = 1;
// Stands for a status where there was no response.
const BROKEN_CONNECTION = -1;
const RETRIED_STATUSES = new Set([BROKEN_CONNECTION, 408, 429, 500, 502, 503, 504]);
// Refusals after which a new ticket for the same cells may help.
const RENEWABLE_CODES = new Set(["ticket-expired", "invalid-ticket"]);
// Waits that double from half a second: six attempts take eight to sixteen seconds.
const ATTEMPTS = 6;
const FIRST_WAIT_SECONDS = 0.5;
// A person is waiting: a collector that asks for more patience is given up.
const LONGEST_WAIT_SECONDS = 60;
// Twice as long as the collector itself waits for its database.
const TIMEOUT_SECONDS = 30;

/** Why a report failed; `code` is the collector's error code, or one of this file's. */
export class ReportError extends Error {
  name = "ReportError";

  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function demand(holds, code, message) {
  if (!holds) throw new ReportError(code, message);
}

const isObject = (item) => typeof item === "object" && item !== null && !Array.isArray(item);
const isName = (item) => typeof item === "string" && item !== "";
const hasOnly = (item, ...keys) =>
  isObject(item) && Object.keys(item).every((key) => keys.includes(key));

// Budgets are decimals, added and compared exactly: with floats, 0.1 + 0.2 exceeds a limit of 0.3.

function decimal(number) {
  const match = /^(\d+)(?:\.(\d+))?(?:e([+-]\d{1,3}))?$/.exec(String(number));
  if (!match) throw new RangeError("a budget must be a decimal number");
  const [, integer, fraction = "", exponent = "0"] = match;
  const places = fraction.length - Number(exponent);
  const units = BigInt(integer + fraction) * 10n ** BigInt(Math.max(0, -places));
  return { units, places: Math.max(0, places) };
}

const unitsAt = ({ units, places }, morePlaces) => units * 10n ** BigInt(morePlaces - places);

function sum(decimals) {
  const places = Math.max(0, ...decimals.map((term) => term.places));
  return { units: decimals.reduce((total, term) => total + unitsAt(term, places), 0n), places };
}

function atMost(one, other) {
  const places = Math.max(one.places, other.places);
  return unitsAt(one, places) <= unitsAt(other, places);
}

function decimalText({ units, places }) {
  const digits = units.toString().padStart(places + 1, "0");
  const point = digits.length - places;
  const fraction = digits.slice(point).replace(/0+$/, "");
  return digits.slice(0, point) + (fraction && `.${fraction}`);
}

// The mechanism: a report is a cell number, likelier within a window around the input.

/** ⌊2^24 · e^ε⌋, certified: the exponential series, until both of its bounds have one floor. */
export function insideWeight(epsilon) {
  const { units: top, places } = decimal(epsilon);
  const bottom = 10n ** BigInt(places);
  let [power, partial, scale] = [1n, 1n, 1n];
  for (let count = 1n; ; count += 1n) {
    power *= top;
    scale *= bottom * count;
    partial = partial * bottom * count + power;
    // The upper bound, a geometric series for the remaining terms, needs terms that shrink.
    if (count * bottom <= top) continue;
    const margin = (count + 1n) * bottom - top;
    const lower = (OUTSIDE_WEIGHT * partial) / scale;
    const upper = (OUTSIDE_WEIGHT * (partial * margin + power * top)) / (scale * margin);
    if (lower === upper) return lower;
  }
}

/** Rounds halves to the even number, as Python and NumPy do: windows must agree cell for cell. */
function roundHalfEven(number) {
  const below = Math.floor(number);
  const fraction = number - below;
  return fraction > 0.5 || (fraction === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

function piecewiseWindow(epsilon) {
  const C = 1 / Math.tanh(epsilon / 4);
  return { width: C - 1, span: 2 * C };
}

function squareWaveWindow(epsilon) {
  let numerator = epsilon * Math.exp(epsilon) - Math.expm1(epsilon);
  let denominator = Math.expm1(epsilon) - epsilon;
  if (epsilon < 0.1) {
    // The differences above would cancel; these are their series, over epsilon squared.
    numerator = denominator = 0;
    for (let order = 2, factorial = 2; order < 16; order += 1, factorial *= order) {
      numerator += (epsilon ** (order - 2) * (order - 1)) / factorial;
      denominator += epsilon ** (order - 2) / factorial;
    }
  }
  const b = numerator / (2 * Math.exp(epsilon) * denominator);
  return { width: 2 * b, span: 1 + b + b };
}

const MECHANISMS = new Map([
  ["piecewise-integer", { inputLow: -1, inputWidth: 2, windowOf: piecewiseWindow }],
  ["square-wave-integer", { inputLow: 0, inputWidth: 1, windowOf: squareWaveWindow }],
  ["k-rr-integer", { categorical: true }],
]);

function windowCells(kind, epsilon, cells) {
  if (kind.categorical) return 1;
  const { width, span } = kind.windowOf(epsilon);
  return Math.min(Math.max(1, roundHalfEven((cells * width) / span)), cells - 1);
}

/** How many steps lead from low to high; null if that is not a whole number, or more than 2^32. */
function stepCount(low, high, step) {
  const ratio = (high - low) / step;
  const steps = roundHalfEven(ratio);
  const whole = Math.abs(ratio - steps) <= WHOLE_STEPS * steps;
  const positive = Number.isFinite(step) && step > 0;
  return positive && steps >= 1 && steps <= MAX_STEPS && whole ? steps : null;
}

/** The mechanism of one group of a plan; groups are counted from 0, tier after tier. */
export function makeMechanism(plan, group) {
  const { low, high, step, categories } = plan;
  const kind = MECHANISMS.get(plan.mechanism);
  const { epsilon } = groupsOf(plan)[group];
  const cells = kind.categorical ? categories.length : plan.cells;
  const window = windowCells(kind, epsilon, cells);
  const weight = insideWeight(epsilon);
  const total = BigInt(window) * weight + BigInt(cells - window) * OUTSIDE_WEIGHT;
  demand(total < TOTAL_LIMIT, "plan-refused", "the plan's total weight must be under 2^53");
  const steps = step === undefined ? null : stepCount(low, high, step);
  return { ...kind, low, high, steps, categories, cells, window, insideWeight: weight, total };
}

/** The window's offset for a value, with 32 fractional bits. */
export function fixedOffset(mechanism, value) {
  const { categorical, categories, inputLow, inputWidth, low, high, steps, cells, window } =
    mechanism;
  if (categorical) return BigInt(categories.indexOf(value)) << FRACTION_BITS;
  const anywhere = Math.min(Math.max((value - low) / (high - low), 0), 1);
  const share = steps === null ? anywhere : roundHalfEven(anywhere * steps) / steps;
  // Normalised and back, as Python does: the rounding of both steps decides some cells.
  const input = inputLow + share * inputWidth;
  const position = (input - inputLow) / inputWidth;
  return BigInt(roundHalfEven(position * ((cells - window) * 2 ** 32)));
}

/** Draws one report: a cell number. `nextWord` returns 64 random bits a call. */
export function drawCell(mechanism, value, nextWord) {
  const { total, insideWeight: weight } = mechanism;
  const window = BigInt(mechanism.window);
  const fixed = fixedOffset(mechanism, value);
  // Rounded up with the probability of the fraction, so that the offset is right on average.
  const up = nextWord() >> FRACTION_BITS < BigInt.asUintN(Number(FRACTION_BITS), fixed);
  const offset = (fixed >> FRACTION_BITS) + (up ? 1n : 0n);
  // Words above the largest multiple of the total would make small numbers likelier.
  const limit = WORD_COUNT - (WORD_COUNT % total);
  let word = nextWord();
  while (word >= limit) word = nextWord();
  const draw = word % total;
  if (draw < window * weight) return Number(offset + draw / weight);
  const outside = (draw - window * weight) / OUTSIDE_WEIGHT;
  return Number(outside >= offset ? outside + window : outside);
}

/** 64 bits from the browser's cryptographic generator. */
export function systemWord() {
  return crypto.getRandomValues(new BigUint64Array(1))[0];
}

function newSecret() {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Checks of what the page passes. Messages name the rule and never the value.

function checkPolicy(policy) {
  const hold = (holds, message) => demand(holds, "invalid-policy", message);
  const allowed = [
    "maxEpsilon", "collectorEpsilon", "lifetimeEpsilon", "low", "high", "step", "categories",
  ];
  hold(hasOnly(policy, ...allowed), `policy must be an object with keys of ${allowed.join(", ")}`);
  const { maxEpsilon = 1, lifetimeEpsilon = 8, low, high, step, categories } = policy;
  // Half of what all collectors may take together, but enough for one campaign.
  const half = Math.max(lifetimeEpsilon / 2, Math.min(maxEpsilon, lifetimeEpsilon));
  const { collectorEpsilon = half } = policy;
  const budgets = [maxEpsilon, collectorEpsilon, lifetimeEpsilon];
  hold(budgets.every((budget) => Number.isFinite(budget) && budget > 0), "budgets must be above 0");
  const range = [low, high].every(Number.isFinite) && categories === undefined;
  const names = Array.isArray(categories) && low === undefined && high === undefined;
  hold(range || names, "policy needs either the numbers low and high, or categories");
  const repeated = names && new Set(categories).size < categories.length;
  hold(range || (categories.every(isName) && !repeated), "categories must be different names");
  hold(names || (high > low && high - low < Infinity), "low must be below high");
  const stepped = step === undefined || (range && stepCount(low, high, step) !== null);
  hold(stepped, "step must divide high - low into whole steps");
  return { maxEpsilon, collectorEpsilon, lifetimeEpsilon, low, high, step, categories };
}

/** A number outside the range, or between steps, passes: a refusal would tell something about it. */
function checkValue(value, { categories }) {
  const rule = categories ? "one of the categories" : "a finite number";
  const holds = categories ? categories.includes(value) : Number.isFinite(value);
  demand(holds, "invalid-value", `value must be ${rule}`);
}

/** A campaign's URL, its key in the ledger too; the id must not be readable as another path. */
function addressOf(collector, campaign) {
  const named = isName(campaign) && /^[\w-]{1,64}$/.test(campaign);
  demand(named, "invalid-request", "campaign must be the id of a campaign");
  demand(/^https?:\/\/[\w[]/.test(collector), "invalid-request", "collector must be a web address");
  const { origin, pathname } = new URL(collector);
  return `${origin}${pathname.replace(/\/+$/, "")}/v1/campaigns/${campaign}`;
}

// Checks of what the collector says.

const holdPlan = (holds, message) => demand(holds, "plan-refused", message);
const holdTicket = (holds, message) => demand(holds, "ticket-refused", message);
const tiersOf = (plan) => [plan, ...(plan.tiers ?? [])];
const groupsOf = (plan) => tiersOf(plan).flatMap((tier) => tier.groups);
const isBudget = (item) =>
  typeof item === "number" && item >= MIN_EPSILON && item <= MAX_EPSILON;
const isListOfGroups = (item) =>
  Array.isArray(item) && item.length > 0 && item.length <= MAX_GROUPS;

function spentBy({ epsilon, reports }) {
  const { units, places } = decimal(epsilon);
  return { units: units * BigInt(reports), places };
}

function isGroup(item) {
  if (!hasOnly(item, "epsilon", "reports", "share")) return false;
  const { epsilon, reports, share } = item;
  const countable = Number.isSafeInteger(reports) && reports > 0;
  return countable && isBudget(epsilon) && share > 0 && share <= 1;
}

function checkTier({ epsilon, groups }, protocol) {
  holdPlan(isBudget(epsilon), "the plan's epsilon must be in [0.0001, 16]");
  holdPlan(isListOfGroups(groups) && groups.every(isGroup), "the plan's groups are malformed");
  const pair = groups.length === 2 && groups.every(({ reports }) => reports === 1);
  holdPlan(protocol === "dap" || pair, "a baseline plan has two groups with one report each");
  const shares = groups.reduce((total, { share }) => total + share, 0);
  const complete = protocol === "baseline" || Math.abs(shares - 1) < 1e-6;
  holdPlan(complete, "the shares of the plan's groups do not add up to 1");
  // A user reports in one group; in the baseline in both.
  const spent = groups.map(spentBy);
  const perUser = protocol === "dap" ? spent : [sum(spent)];
  const within = perUser.every((budget) => atMost(budget, decimal(epsilon)));
  holdPlan(within, "the plan's groups spend more than its epsilon");
}

function checkDomain(plan, { low, high, step, categories }) {
  const { categories: names, cells = names?.length } = plan;
  const same = JSON.stringify(names) === JSON.stringify(categories);
  holdPlan(same, "the plan's categories are not the policy's");
  holdPlan(plan.low === low && plan.high === high, "the plan's range is not the policy's");
  holdPlan(plan.step === step, "the plan's step is not the policy's");
  const { categorical } = MECHANISMS.get(plan.mechanism);
  holdPlan(Boolean(categorical) === Boolean(names), "the plan's mechanism is for another domain");
  const inBounds = Number.isSafeInteger(cells) && cells >= 2 && cells <= MAX_CELLS;
  const matches = cells === (names?.length ?? cells);
  holdPlan(inBounds && matches, "the plan's number of cells is not valid");
}

function checkPlan(plan, policy) {
  const domainKeys = ["low", "high", "step", "unit", "categories"];
  const planKeys = ["mechanism", "protocol", ...domainKeys, "cells", "tiers"];
  const tierKeys = ["epsilon", "min_epsilon", "groups"];
  holdPlan(hasOnly(plan, ...planKeys, ...tierKeys), "the plan has unknown keys");
  holdPlan(MECHANISMS.has(plan.mechanism), "the plan's mechanism is not one for devices");
  holdPlan(["dap", "baseline"].includes(plan.protocol), "the plan's protocol is unknown");
  checkDomain(plan, policy);
  const { tiers = [] } = plan;
  const few = Array.isArray(tiers) && tiers.length <= MAX_GROUPS;
  const wellFormed = few && tiers.every((tier) => hasOnly(tier, ...tierKeys));
  holdPlan(wellFormed, "the plan's tiers are malformed");
  tiersOf(plan).forEach((tier) => checkTier(tier, plan.protocol));
  holdPlan(groupsOf(plan).length <= MAX_GROUPS, "the plan has too many groups");
  // Each mechanism checks its own bounds when it is made: here, before anything is sent.
  groupsOf(plan).forEach((_, group) => makeMechanism(plan, group));
}

function checkOffer(offer, campaign, policy) {
  holdPlan(offer.id === campaign, "the answer is about another campaign");
  holdPlan(isName(offer.fingerprint), "the plan has no fingerprint");
  checkPlan(offer.plan, policy);
  demand(offer.state === "open", "campaign-not-open", "the campaign is not open");
}

/** The groups of a tier with their reports, in the form in which a ticket names them. */
function assignments(plan, tier) {
  const before = tiersOf(plan).slice(0, tier);
  const first = before.reduce((count, { groups }) => count + groups.length, 0);
  return tiersOf(plan)[tier].groups.map(({ reports }, i) => ({ group: first + i, reports }));
}

function checkTicket(answer, { id, plan, fingerprint }, tier) {
  const { ticket, groups } = answer;
  holdTicket(isName(ticket) && ticket.length <= MAX_TICKET_LENGTH, "the ticket is malformed");
  holdTicket(answer.campaign === id, "the ticket is for another campaign");
  holdTicket(answer.fingerprint === fingerprint, "the ticket is for another plan");
  holdTicket(answer.tier === tier, "the ticket is for another tier");
  holdTicket(isListOfGroups(groups) && groups.every(isObject), "the ticket's groups are malformed");
  const possible = assignments(plan, tier);
  const assigned = groups.map(({ group, reports }) =>
    possible.find((option) => option.group === group && option.reports === reports));
  const count = plan.protocol === "baseline" ? possible.length : 1;
  const distinct = new Set(assigned).size === count;
  const right = assigned.length === count && assigned.every(isObject) && distinct;
  holdTicket(right, "the ticket's groups are not the plan's");
  return { ticket, groups: assigned };
}

// Budgets: what a report would spend, against what the page allows.

function limitExceeded(spending, others, { maxEpsilon, collectorEpsilon, lifetimeEpsilon }) {
  if (!atMost(spending, decimal(maxEpsilon))) return "maxEpsilon";
  if (!atMost(sum([others.overall, spending]), decimal(lifetimeEpsilon))) return "lifetimeEpsilon";
  const here = sum([others.here, spending]);
  return atMost(here, decimal(collectorEpsilon)) ? null : "collectorEpsilon";
}

function checkBudget(spending, others, policy) {
  const limit = limitExceeded(spending, others, policy);
  demand(limit === null, "budget-exceeded", `the report would spend more than ${limit}`);
}

/**
 * The tier with the largest budget up to `maxEpsilon`. It follows from the plan and that setting
 * alone: a smaller tier for want of another budget would tell what was spent elsewhere.
 */
function chooseTier(plan, others, policy) {
  const budgets = tiersOf(plan).map(({ epsilon }) => epsilon);
  const within = budgets.filter((budget) => atMost(decimal(budget), decimal(policy.maxEpsilon)));
  const budget = within.length ? Math.max(...within) : Math.min(...budgets);
  checkBudget(decimal(budget), others, policy);
  return budgets.indexOf(budget);
}

// The ledger: what was drawn and spent in each campaign.

function openDatabase() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(LEDGER, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(LEDGER);
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

function changeInside(transaction, update) {
  return new Promise((resolve, reject) => {
    let fault = null;
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(fault ?? transaction.error);
    const store = transaction.objectStore(LEDGER);
    const reading = store.get(LEDGER);
    reading.onsuccess = () => {
      try {
        const text = update(reading.result ?? null);
        if (text !== null) store.put(text, LEDGER);
      } catch (error) {
        fault = error;
        transaction.abort();
      }
    };
  });
}

/**
 * IndexedDB, whose transactions let one tab at a time read and write. localStorage does not, even
 * under a lock: a tab may read it before it sees what another tab has written.
 */
const ownStorage = {
  async change(update) {
    const database = await openDatabase();
    try {
      // Strict: what was spent must be on disk before anything is sent.
      const onDisk = { durability: "strict" };
      await changeInside(database.transaction(LEDGER, "readwrite", onDisk), update);
    } finally {
      database.close();
    }
  },
};

const spentOn = (campaigns) =>
  sum(Object.values(campaigns).map(({ epsilon = 0 }) => decimal(epsilon)));

/** Campaigns of a ledger; one that cannot be read is an error, since it may hide what was spent. */
function readLedger(text) {
  if (text === null) return {};
  const { version, campaigns } = JSON.parse(text);
  demand(version === LEDGER_VERSION && isObject(campaigns), "storage", "the ledger is malformed");
  return campaigns;
}

/**
 * A function that replaces a campaign's entry by `next(entry)`, in one transaction. It resolves to
 * the new entry, and to what other campaigns have spent, `overall` and `here` at its collector.
 */
function ledgerOf(storage, key) {
  const collector = key.slice(0, key.lastIndexOf("/") + 1);
  return async (next = (entry) => entry) => {
    let outcome;
    const update = (text) => {
      const { [key]: before = {}, ...rest } = readLedger(text);
      const same = Object.entries(rest).filter(([address]) => address.startsWith(collector));
      const others = { overall: spentOn(rest), here: spentOn(Object.fromEntries(same)) };
      const entry = next(before, others);
      outcome = { entry, others };
      const campaigns = { ...rest, [key]: entry };
      return entry === before ? null : JSON.stringify({ version: LEDGER_VERSION, campaigns });
    };
    try {
      await storage.change(update);
    } catch (fault) {
      if (fault instanceof ReportError) throw fault;
      throw new ReportError("storage", "the ledger can be neither read nor written");
    }
    return outcome;
  };
}

// The collector's HTTP interface.

const sleepFor = (seconds) => new Promise((wake) => { setTimeout(wake, 1000 * seconds); });

function secondsToWait(attempt, retryAfter) {
  // Random, so that devices that were refused together do not return together.
  const jitter = Number(systemWord() >> 11n) / 2 ** 53;
  return Math.max(retryAfter, (FIRST_WAIT_SECONDS * 2 ** attempt * (1 + jitter)) / 2);
}

function secondsOf(retryAfter) {
  const date = (Date.parse(retryAfter) - Date.now()) / 1000;
  return Math.max(0, /^\d+$/.test(retryAfter) ? Number(retryAfter) : date) || 0;
}

function readAnswer({ status, text }) {
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    // No JSON: refused below, like every answer that is no object.
  }
  if (status === 200 && isObject(body)) return body;
  // A page may show the code or branch on it: only what looks like one is passed on.
  const named = body?.error?.code;
  const code = isName(named) && /^[a-z-]{1,40}$/.test(named) ? named : "answer-refused";
  throw new ReportError(code, `the collector refused with ${code} (status ${status})`);
}

async function askOnce(fetch, address, request, read = (response) => response.text()) {
  try {
    const signal = AbortSignal.timeout(1000 * TIMEOUT_SECONDS);
    // Nothing but the request goes out, and a redirect cannot send it elsewhere.
    const isolated = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "manual" };
    const response = await fetch(address, { cache: "no-store", ...isolated, ...request, signal });
    const { status, headers } = response;
    const retryAfter = secondsOf(headers.get("Retry-After"));
    return { status, retryAfter, text: await read(response) };
  } catch {
    return { status: BROKEN_CONNECTION, retryAfter: 0 };
  }
}

/**
 * Asks until there is an answer or attempts run out. Each attempt sends the same bytes: a server
 * that counted the first, and whose answer was lost, recognises the next one.
 */
async function untilAnswered(askAgain, sleep, server) {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await askAgain();
    if (!RETRIED_STATUSES.has(answer.status)) return answer;
    const wait = secondsToWait(attempt, answer.retryAfter);
    const retry = attempt + 1 < ATTEMPTS && wait <= LONGEST_WAIT_SECONDS;
    demand(retry, "unavailable", `the ${server} does not answer now; try again later`);
    await sleep(wait);
  }
}

function collectorAt(address, fetch, sleep) {
  return async (path, body) => {
    const headers = { "Content-Type": "application/json" };
    const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
    const askAgain = () => askOnce(fetch, address + path, request);
    return readAnswer(await untilAnswered(askAgain, sleep, "collector"));
  };
}

/** Sends a request to an issuer of tokens; resolves to the status and the body's bytes. */
function issuerBy(fetch, sleep) {
  const read = async (response) => new Uint8Array(await response.arrayBuffer());
  return async (address, request) => {
    const askAgain = () => askOnce(fetch, address, request, read);
    const { status, text: bytes } = await untilAnswered(askAgain, sleep, "issuer");
    return { status, bytes };
  };
}

// The protocol.

function drawCells(plan, groups, value) {
  return groups.flatMap(({ group, reports }) => {
    const mechanism = makeMechanism(plan, group);
    return Array.from({ length: reports }, () => drawCell(mechanism, value, systemWord));
  });
}

/**
 * Stores a secret for this campaign alone and a tier. Once stored, neither changes: a smaller tier
 * at the second try would tell the collector what was spent elsewhere.
 */
function prepare(ledger, { plan, fingerprint }, policy) {
  return ledger((entry, others) => {
    if (entry.accepted) return entry;
    if (!entry.device) {
      return { device: newSecret(), fingerprint, tier: chooseTier(plan, others, policy) };
    }
    const same = entry.fingerprint === fingerprint && entry.tier < tiersOf(plan).length;
    holdPlan(same, "the plan has changed since this device enrolled");
    checkBudget(decimal(tiersOf(plan)[entry.tier].epsilon), others, policy);
    return entry;
  });
}

/**
 * The campaign's token: the one in the ledger, or else a new one from the issuer. What is asked for
 * is stored before: after a lost answer the same request is sent, and costs no second token.
 */
async function fetchToken(ledger, offer, { collector, issuer, exchange }) {
  const pass = await import("./privacy-pass.js");
  const terms = await pass.checkedTerms(offer, collector);
  const { pendingToken, token: storedToken } = (await ledger()).entry;
  // A collector that changes its terms could otherwise use up the tokens of an account.
  const same = !pendingToken || pass.isOfTerms(pendingToken, terms);
  demand(same, "token-refused", "the campaign's tokens are others than it asked for before");
  if (storedToken) return storedToken;
  demand(isObject(issuer), "invalid-token", "the campaign needs an issuer of tokens");
  const address = await pass.requestAddress(issuer, terms, exchange);
  const fresh = pass.newPending(terms);
  const { entry } = await ledger((now) =>
    now.accepted || now.pendingToken ? now : { ...now, pendingToken: fresh });
  demand(entry.pendingToken, "storage", "another tab has reported meanwhile; try again");
  const token = await pass.signedToken(entry.pendingToken, address, issuer.account, exchange);
  await ledger((now) => (now.accepted ? now : { ...now, token }));
  return token;
}

async function tokenOf(ledger, offer, request) {
  try {
    return await fetchToken(ledger, offer, request);
  } catch (error) {
    if (error.name !== "TokenError") throw error;
    throw new ReportError(error.code, error.message);
  }
}

async function enrol(ask, ledger, request, previous = {}) {
  const { campaign, invite, policy } = request;
  const offer = await ask("");
  checkOffer(offer, campaign, policy);
  const { plan, access } = offer;
  const invited = ["open", "token"].includes(access) || isName(invite);
  demand(invited, "invalid-invite", "the campaign needs an invite");
  const { device, tier, accepted } = (await prepare(ledger, offer, policy)).entry;
  if (accepted) return {};
  let proof = access === "open" ? {} : { invite };
  if (access === "token") proof = { token: await tokenOf(ledger, offer, request) };
  const answer = await ask("/tickets", { device, ...proof, tier, ...previous });
  return { plan, device, ...checkTicket(answer, offer, tier) };
}

/**
 * Draws cells and stores them with what they spend, unless that was done before: a second draw of
 * the same value would spend the budget a second time.
 */
function draw(ledger, { plan, device, ticket, groups }, value, policy) {
  return ledger((entry, others) => {
    if (entry.epsilon) return entry;
    demand(entry.device === device, "storage", "the ledger has lost this device; try again");
    const planGroups = groupsOf(plan);
    const spending = sum(groups.map(({ group }) => spentBy(planGroups[group])));
    checkBudget(spending, others, policy);
    const values = drawCells(plan, groups, value);
    return { ...entry, ticket, groups, values, epsilon: decimalText(spending) };
  });
}

async function submit(ask, { ticket, device, values }) {
  const { status } = await ask("/reports", { ticket, device, values });
  demand(status === "accepted", "answer-refused", "the collector did not accept the report");
}

/** Sends what was drawn; if the ticket has expired, the same cells again with a new ticket. */
async function send(ask, ledger, entry, request) {
  try {
    await submit(ask, entry);
  } catch (refusal) {
    if (!RENEWABLE_CODES.has(refusal.code)) throw refusal;
    // A collector that lost its record of the ticket issues it again for the same groups.
    const previous = refusal.code === "invalid-ticket" ? { ticket: entry.ticket } : {};
    const { ticket, groups } = await enrol(ask, ledger, request, previous);
    const same = JSON.stringify(groups) === JSON.stringify(entry.groups);
    holdTicket(same, "the new ticket is for other groups than the first");
    // If another tab was accepted meanwhile, its entry stands.
    await ledger((now) => (now.accepted ? now : { ...now, ticket }));
    await submit(ask, { ...entry, ticket });
  }
  // The secret and the cells have served: the storage forgets them.
  await ledger(({ groups, epsilon }) => ({ groups, epsilon, accepted: true }));
}

/**
 * Reports `value` to a campaign, once in the life of the storage.
 *
 * Called again, it sends the very same cells until the collector has accepted them, and nothing
 * after that. Budgets in the receipt are exact decimals, as text.
 */
export async function report({
  collector = globalThis.location?.origin, campaign, value, invite, issuer, policy: uncheckedPolicy,
  storage = ownStorage, fetch = (...options) => globalThis.fetch(...options), sleep = sleepFor,
}) {
  const policy = checkPolicy(uncheckedPolicy);
  checkValue(value, policy);
  const address = addressOf(collector, campaign);
  const [ask, ledger] = [collectorAt(address, fetch, sleep), ledgerOf(storage, address)];
  const exchange = issuerBy(fetch, sleep);
  const request = { collector, campaign, invite, issuer, policy, exchange };
  const spentEpsilon = (await ledger()).entry.epsilon;
  if (!spentEpsilon) await draw(ledger, await enrol(ask, ledger, request), value, policy);
  const { entry, others } = await ledger();
  const { groups, epsilon, accepted: already = false } = entry;
  if (!already) {
    checkBudget(decimal(epsilon), others, policy);
    await send(ask, ledger, entry, request);
  }
  const reports = groups.reduce((count, group) => count + group.reports, 0);
  const spent = decimalText(sum([others.overall, decimal(epsilon)]));
  return { campaign, groups: groups.map(({ group }) => group), reports, epsilon, spent, already };
}
