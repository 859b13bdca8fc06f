/**
 * Building and changing the page. Text is inserted as text, never as HTML: names and categories are
 * written by other people. What has not changed is left alone, so that focus and selection stay.
 */

export const byId = (id) => document.getElementById(id);

/** A new element with attributes (null and false are left out) and children (strings are text). */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

/** Set the length of a bar, as a share of its track. */
export function setLength(node, share) {
  const length = `${(100 * Math.min(1, Math.max(0, share || 0))).toFixed(2)}%`;
  if (node.style.width !== length) node.style.width = length;
}

/**
 * Make the children of `parent` those of `items`, in order, reusing the child of the same key.
 * `create(item)` makes a child, `update(child, item)` changes it.
 */
export function keyed(parent, items, { key, create, update }) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let next = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    const child = old.get(name) ?? create(item);
    old.delete(name);
    child.dataset.key = name;
    update(child, item);
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
  for (const child of old.values()) child.remove();
}
