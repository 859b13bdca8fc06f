/** One group of categories: for each its observed share beside the fitted one, by name. */

import { element, keyed, setLength, setText } from "./dom.js";
import { legend } from "./figure.js";
import { count, percent } from "./format.js";
import { dataTable, scrolling } from "./table.js";

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
  const rest = element("p", { class: "help" });
  rest.hidden = true;
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
    node: element("div", {}, list, rest, details),
    update(picture, highest, name) {
      setText(named, `: ${name}`);
      scroll.setAttribute("aria-label", `${name}: numbers`);
      latest = picture;
      const shown = mostReported(picture.observed);
      keyed(list, shown, {
        key: (place) => place,
        create: () => emptyRow(),
        update: (row, place) => fill(row, categories[place], picture, place, highest),
      });
      rest.hidden = shown.length === categories.length;
      setText(
        rest,
        `The ${count(shown.length)} most reported of ${count(categories.length)}; all are in the table.`,
      );
      fillTable();
    },
  };
}

/** The places of the largest shares, in the plan's order. */
function mostReported(observed) {
  const places = observed.map((_, place) => place);
  if (places.length <= MOST_BARS) return places;
  return places
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

function fill(row, name, { observed, honest, poison }, place, highest) {
  const [label, all, split, numbers] = row.children;
  setText(label, name);
  setLength(all.children[0], observed[place] / highest);
  setLength(split.children[0], honest[place] / highest);
  setLength(split.children[1], poison[place] / highest);
  const poisoned = poison[place] > 0 ? `, poison ${percent(poison[place])}` : "";
  setText(numbers, `all ${percent(observed[place])}, honest ${percent(honest[place])}${poisoned}`);
}

const rows = (categories, { observed, honest, poison }) =>
  categories.map((name, place) => ({
    key: place,
    cells: [name, percent(observed[place]), percent(honest[place]), percent(poison[place])],
  }));
