/** Tables that change in place: a row keeps its element as long as its key is there. */

import { element, keyed, setAttribute, setLength, setText } from "./dom.js";

/**
 * A table with a caption for screen readers. `columns` are `{title, number}`; `update(rows)` takes
 * `{key, cells}` with as many cells as columns, each a text or `{text, note, bar, href, badge}`:
 * a second line, the length of a bar under it, a link, the kind of a badge.
 */
export function dataTable({ caption, columns, id = null, stacked = false }) {
  const body = element("tbody", { role: "rowgroup" });
  const node = element(
    "table",
    { id, role: "table", class: stacked ? "stacked" : null },
    element("caption", { class: "unseen" }, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...columns.map(heading))),
    body,
  );
  const create = () => element("tr", { role: "row" }, ...columns.map(emptyCell));
  const update = (row, { cells }) =>
    cells.forEach((cell, place) => fill(row.children[place], cell));
  return { node, update: (rows) => keyed(body, rows, { key: (row) => row.key, create, update }) };
}

/** A frame in which a wide table scrolls, by keyboard too. */
export const scrolling = (name, ...children) =>
  element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    ...children,
  );

const kind = (column) => (column.number ? "number" : null);

const heading = (column) =>
  element("th", { scope: "col", role: "columnheader", class: kind(column) }, column.title);

function emptyCell(column, place) {
  const attributes = { class: kind(column), "data-title": column.title };
  if (place === 0) return element("th", { scope: "row", role: "rowheader", ...attributes });
  return element("td", { role: "cell", ...attributes });
}

function fill(node, cell) {
  const given = typeof cell === "string" ? { text: cell } : cell;
  const text = child(node, given.href ? "a" : "span", given.badge ? "badge" : "text");
  setText(text, given.text);
  if (given.href) setAttribute(text, "href", given.href);
  if (given.badge) setAttribute(text, "data-state", given.badge);
  if (given.note !== undefined) setText(child(node, "small", "note"), given.note);
  if (given.bar !== undefined) fillBar(node, given.bar);
}

function fillBar(node, share) {
  const track = child(node, "span", "bar");
  setAttribute(track, "aria-hidden", "true");
  setLength(child(track, "span", "fill"), share);
}

/** The child of a class, made when it is first asked for. */
function child(node, tag, name) {
  const found = node.querySelector(`:scope > .${name}`);
  if (found?.localName === tag) return found;
  const made = element(tag, { class: name });
  if (found) found.replaceWith(made);
  else node.append(made);
  return made;
}
