/** Compares the device's draws with the test vectors in a file; prints how many agree. */

import fs from "node:fs";

import { drawCell, fingerprint, fixedOffset, mechanismOf } from "./device.mjs";

const { vectors, plans } = JSON.parse(fs.readFileSync(0, "utf8"));
const faults = [];
let checked = 0;

function compare(name, received, expected) {
  checked += 1;
  if (String(received) !== String(expected)) faults.push(`${name}: ${received}, not ${expected}`);
}

function planOf({ mechanism, cells, low, high, step }) {
  const names = Array.from({ length: cells }, (_, index) => `c${index}`);
  return mechanism === "k-rr-integer" ? { mechanism, categories: names } : { mechanism, cells, low, high, step };
}

for (const item of vectors.mechanisms) {
  const name = `${item.mechanism} ${item.epsilon} ${item.cells}`;
  const mechanism = mechanismOf(planOf(item), item);
  compare(`${name} inside_weight`, mechanism.a, item.inside_weight);
  compare(`${name} window`, mechanism.window, item.window);
  compare(`${name} total`, mechanism.sum, item.total);
  for (const { value, fixed, words, used, cell } of item.draws) {
    let taken = 0;
    const nextWord = () => BigInt(`0x${words[taken++]}`);
    compare(`${name} fixed`, fixedOffset(mechanism, value), fixed);
    compare(`${name} cell`, drawCell(mechanism, value, nextWord), cell);
    compare(`${name} used`, taken, used);
  }
}
for (const item of vectors.refused) {
  let refused = false;
  try {
    mechanismOf(planOf(item), item);
  } catch {
    refused = true;
  }
  compare("refused", refused, true);
}
for (const [plan, expected] of plans) compare("fingerprint", fingerprint(plan), expected);
console.log(JSON.stringify({ checked, faults: faults.slice(0, 10) }));
