/**
 * Makes one element. Text becomes text nodes and nothing else: there is no way to hand in markup.
 *
 * @param {string} tag
 * @param {Object<string, unknown>} attributes  `true` sets an empty attribute; `false`, null and undefined none
 * @param {...(Node|string|null|undefined)} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value != null) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/** The element of the page with this id. */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * Makes a text node hold `text`. What it holds already is kept and only the rest appended where possible, so
 * that a selection inside survives while more arrives.
 *
 * @param {Text} node
 * @param {string} text
 */
export function setText(node, text) {
  const held = node.data;
  if (held === text) return;
  if (text.startsWith(held)) node.appendData(text.slice(held.length));
  else node.data = text;
}
