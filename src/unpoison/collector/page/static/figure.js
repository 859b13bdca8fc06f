/** A chart as a figure: caption, drawing, and the same numbers as a table for whoever prefers it. */

import { element, setText } from "./dom.js";
import { dataTable, scrolling } from "./table.js";

let made = 0;

/** `columns` are those of the table; `setRows` takes a function, called only while it is open. */
export function chartFigure({ columns, level = "h3" }) {
  made += 1;
  const title = element(level, { class: "figure-title" });
  const note = element("p", { class: "figure-note" });
  const caption = element("figcaption", { id: `caption-${made}` }, title, note);
  const host = element("div", { class: "plot", role: "img", "aria-labelledby": caption.id });
  const table = dataTable({ caption: "The numbers of the chart above", columns });
  const scroll = scrolling("Numbers", table.node);
  const named = element("span", { class: "unseen" });
  const details = element(
    "details",
    {},
    element("summary", {}, "Numbers as a table", named),
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
      setText(named, `: ${heading}`);
      scroll.setAttribute("aria-label", `${heading}: numbers`);
    },
    setRows(given) {
      rows = given;
      refresh();
    },
  };
}

/** What the marks of a chart mean: `[["observed", "All reports"], …]`, the first a class. */
export function legend(entries) {
  const items = entries.map(([name, text]) =>
    element("li", {}, element("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text),
  );
  return element("ul", { class: "legend" }, ...items);
}
