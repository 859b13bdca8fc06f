/** Tables that are updated in place: a row keeps its element as long as its key stays. */

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
    cells.forEach((cell, index) => fill(row.children[index], cell));
  return { node, update: (rows) => keyed(body, rows, { key: (row) => row.key, create, update }) };
}

/** A frame in which a wide table scrolls; focusable, so that the keyboard scrolls it too. */
export const scrolling = (name, ...children) =>
  element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    ...children,
  );

const kind = (column) => (column.number ? "number" : null);

const heading = (column) =>
  element("th", { scope: "col", role: "columnheader", class: kind(column) }, column.title);

function emptyCell(column, index) {
  const attributes = { class: kind(column), "data-title": column.title };
  if (index === 0) return element("th", { scope: "row", role: "rowheader", ...attributes });
  return element("td", { role: "cell", ...attributes });
}

function fill(node, cell) {
  const content = typeof cell === "string" ? { text: cell } : cell;
  const [name, other] = content.badge ? ["badge", "text"] : ["text", "badge"];
  node.querySelector(`:scope > .${other}`)?.remove();
  const text = child(node, content.href ? "a" : "span", name);
  if (node.firstElementChild !== text) node.prepend(text);
  setText(text, content.text);
  if (content.href) setAttribute(text, "href", content.href);
  if (content.badge) setAttribute(text, "data-state", content.badge);
  if (content.note !== undefined) setText(child(node, "small", "note"), content.note);
  if (content.bar !== undefined) fillBar(node, content.bar);
}

function fillBar(node, share) {
  const track = child(node, "span", "bar");
  setAttribute(track, "aria-hidden", "true");
  setLength(child(track, "span", "fill"), share);
}

/** The child with a class, created if it is missing. */
function child(node, tag, name) {
  const existing = node.querySelector(`:scope > .${name}`);
  if (existing?.localName === tag) return existing;
  const created = element(tag, { class: name });
  if (existing) existing.replaceWith(created);
  else node.append(created);
  return created;
}
