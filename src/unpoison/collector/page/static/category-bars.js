/** Bars for one group of categories: the observed share of each beside the fitted one. */

import { element, keyed, setLength, setText } from "./dom.js";
import { legend } from "./figure.js";
import { count, percent } from "./format.js";
import { dataTable, scrolling } from "./table.js";

/** A list of more is too long to take in; the table has all. */
const MOST_BARS = 24;

export const categoryLegend = () =>
  legend([
    ["observed", "All reports"],
    ["honest-block", "Fitted honest part"],
    ["poison", "Estimated poison"],
  ]);

/** Bars for the most reported categories, and a table of all. */
export function categoryBars(categories) {
  const list = element("ul", { class: "categories" });
  const omission = element("p", { class: "help" });
  omission.hidden = true;
  const table = dataTable({
    caption: "Shares of reports by category",
    columns: [
      { title: "Category" },
      ...["All", "Honest", "Poison"].map((title) => ({ title, number: true })),
    ],
  });
  const named = element("span", { class: "unseen" });
  const scroll = scrolling("Numbers", table.node);
  const details = element(
    "details",
    {},
    element("summary", {}, "Numbers as a table", named),
    scroll,
  );
  let latest = null;
  const fillTable = () => details.open && latest && table.update(rows(categories, latest));
  details.addEventListener("toggle", fillTable);
  return {
    node: element("div", {}, list, omission, details),
    update(picture, highest, name) {
      setText(named, `: ${name}`);
      scroll.setAttribute("aria-label", `${name}: numbers`);
      latest = picture;
      const shown = mostReported(picture.observed);
      keyed(list, shown, {
        key: (index) => index,
        create: () => emptyRow(),
        update: (row, index) => fill(row, categories[index], picture, index, highest),
      });
      omission.hidden = shown.length === categories.length;
      setText(
        omission,
        `The ${count(shown.length)} most reported of ${count(categories.length)}; all are in the table.`,
      );
      fillTable();
    },
  };
}

/** Indices of the categories with the largest shares, in the plan's order. */
function mostReported(observed) {
  const indices = observed.map((_, index) => index);
  if (indices.length <= MOST_BARS) return indices;
  return indices
    .sort((a, b) => observed[b] - observed[a])
    .slice(0, MOST_BARS)
    .sort((a, b) => a - b);
}

function emptyRow() {
  const track = (...fills) =>
    element(
      "span",
      { class: "track", "aria-hidden": "true" },
      ...fills.map((name) => element("span", { class: `fill ${name}` })),
    );
  return element(
    "li",
    {},
    element("span", { class: "name" }),
    track("observed"),
    track("honest", "poison"),
    element("span", { class: "numbers" }),
  );
}

function fill(row, name, { observed, honest, poison }, index, highest) {
  const [label, all, split, numbers] = row.children;
  setText(label, name);
  setLength(all.children[0], observed[index] / highest);
  setLength(split.children[0], honest[index] / highest);
  setLength(split.children[1], poison[index] / highest);
  const poisoned = poison[index] > 0 ? `, poison ${percent(poison[index])}` : "";
  setText(numbers, `all ${percent(observed[index])}, honest ${percent(honest[index])}${poisoned}`);
}

const rows = (categories, { observed, honest, poison }) =>
  categories.map((name, index) => ({
    key: index,
    cells: [name, percent(observed[index]), percent(honest[index]), percent(poison[index])],
  }));
