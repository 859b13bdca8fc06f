/** The list of campaigns: asked for page by page, searched, filtered and ordered. */

import { ask } from "./api.js";
import { byId } from "./dom.js";

/** Campaigns of one request: more than fit on a screen, and a small answer. */
const PAGE_SIZE = 50;
const TIMEOUT_MILLISECONDS = 15_000;

const ORDERS = {
  newest: () => 0,
  name: (a, b) => a.name.localeCompare(b.name),
  reports: (a, b) => b.submissions - a.submissions,
  attackers: (a, b) => share(b) - share(a),
};

/** The share of attackers in the last estimate; campaigns without one come last. */
const share = ({ last_estimate: last }) => last?.byzantine_fraction ?? -1;

const wanted = () => ({
  search: byId("list-search").value.trim(),
  state: byId("list-state").value,
});

/** How many pages are shown. */
let pages = 1;

export const showMore = () => (pages += 1);
export const startAgain = () => (pages = 1);

/** Whether nothing is searched for, so that an empty list means that there is no campaign. */
export const everything = () => !wanted().search && !wanted().state;

/** The campaigns that are wanted, in the chosen order, and whether there are more. */
export async function listed() {
  const { search, state } = wanted();
  let campaigns = [];
  let next = null;
  for (let page = 0; page < pages && (page === 0 || next); page += 1) {
    const answer = await ask(`/v1/campaigns?${query(search, state, next)}`, {
      timeout: TIMEOUT_MILLISECONDS,
    });
    // A collector that does not know pages answers with all campaigns.
    if (answer.next === undefined)
      return { campaigns: ordered(answer.campaigns.filter((one) => fits(one, search, state))) };
    campaigns = campaigns.concat(answer.campaigns);
    next = answer.next;
  }
  return { campaigns: ordered(campaigns), more: Boolean(next) };
}

function query(search, state, after) {
  const given = { limit: PAGE_SIZE, search, state, after };
  const used = Object.entries(given).filter(([, value]) => value !== "" && value !== null);
  return new URLSearchParams(used);
}

function fits({ id, name, state: present }, search, state) {
  const text = search.toLowerCase();
  return (
    (!state || present === state) && (id.includes(text) || name.toLowerCase().includes(text))
  );
}

const ordered = (campaigns) => [...campaigns].sort(ORDERS[byId("list-order").value]);
