/** A preview of the groups that two budgets make; the collector computes them exactly. */

import { epsilon } from "./format.js";
import { parsed } from "./numbers.js";
import { groupWords } from "./words.js";

/** Beyond this the preview would be longer than the form. */
const MOST_GROUPS = 24;

/** ε, ε/2, ε/4, … down to ε0, each with as many reports as ε allows. */
function halved(whole, smallest) {
  const budgets = [];
  for (let budget = whole; budget > smallest && budgets.length < MOST_GROUPS; budget /= 2)
    budgets.push(budget);
  return [...budgets, smallest].map((budget) => ({
    epsilon: budget,
    reports: Math.floor(whole / budget + 1e-9),
  }));
}

/** ε over ε0 where none is entered, as in a plan without one. */
const DEFAULT_PARTS = 8;

export function previewGroups(wholeText, smallestText) {
  const whole = parsed(wholeText);
  const byDefault = !smallestText.trim();
  const smallest = byDefault ? whole / DEFAULT_PARTS : parsed(smallestText);
  if (!(whole > 0) || !(smallest > 0) || smallest > whole)
    return "ε0 must be above 0, and at most ε.";
  const groups = halved(whole, smallest);
  if (groups.length === 1)
    return "This makes one group. Attackers can be told from honest users only where there are several: choose a smaller ε0.";
  if (groups.length > MOST_GROUPS) return "This makes very many groups: choose a larger ε0.";
  return `This makes ${groups.length} groups (budget of a report × reports of a user): ${groupWords(groups)}.${byDefault ? " Half of all users are in the first." : ""} Whatever the group, a user spends at most ε = ${epsilon(whole)}.`;
}
