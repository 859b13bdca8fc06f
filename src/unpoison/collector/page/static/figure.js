/** A chart as a figure: caption, drawing, and the same numbers as a table. */

import { element, setText } from "./dom.js";
import { dataTable, scrolling } from "./table.js";

/** Figures made so far: their captions need different ids. */
let figures = 0;

/** `columns` are those of the table; `setRows` takes a function that is called while it is open. */
export function chartFigure({ columns, level = "h3" }) {
  figures += 1;
  const title = element(level, { class: "figure-title" });
  const note = element("p", { class: "figure-note" });
  const caption = element("figcaption", { id: `caption-${figures}` }, title, note);
  const host = element("div", { class: "plot", role: "img", "aria-labelledby": caption.id });
  const table = dataTable({ caption: "The numbers of the chart above", columns });
  const scroll = scrolling("Numbers", table.node);
  const ofChart = element("span", { class: "unseen" });
  const details = element(
    "details",
    {},
    element("summary", {}, "Numbers as a table", ofChart),
    scroll,
  );
  const node = element("figure", {}, caption, host, details);
  let rows = () => [];
  const refresh = () => details.open && table.update(rows());
  details.addEventListener("toggle", refresh);
  return {
    node,
    host,
    describe(heading, text) {
      setText(title, heading);
      setText(note, text);
      setText(ofChart, `: ${heading}`);
      scroll.setAttribute("aria-label", `${heading}: numbers`);
    },
    setRows(makeRows) {
      rows = makeRows;
      refresh();
    },
  };
}

/** The legend of a chart, from pairs of a style class and a text. */
export function legend(entries) {
  const items = entries.map(([name, text]) =>
    element("li", {}, element("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text),
  );
  return element("ul", { class: "legend" }, ...items);
}
