/** The trees of views, with the parts of a view's document that pictures need. */

/**
 * A node of a tree; times in ns a step. `self`: without everything below; `share` of all ops.
 * @typedef {{name: string, ns: number, self: number, share: number | null, children: Node[]}} Node
 */

/**
 * Return the tree of a view's document; rows below `least` of the whole are left out.
 * @param {any} document
 * @param {string} title name of the root
 * @param {number} [least] share of the whole
 * @returns {Node}
 */
export function treeOf(document, title, least = 0) {
  const root = { name: title, ns: document.total.time_ns, self: 0, share: 1, children: [] };
  const nodes = document.rows.map((row) => ({ name: row.label, ns: row.time_ns, self: row.own.time_ns, share: row.share, children: [] }));
  document.rows.forEach((row, at) => {
    if (row.time_ns > 0 && (row.share ?? 0) >= least) (row.parent === null ? root : nodes[row.parent]).children.push(nodes[at]);
  });
  for (const node of [root, ...nodes]) node.children.sort((a, b) => b.ns - a.ns);
  return root;
}

/** Return input shapes as text: 32×10, 10. */
export function shapesOf(node) {
  return node.input_shapes.map((shape) => (shape === null ? "?" : shape.map((size) => (size < 0 ? "?" : size)).join("×") || "scalar")).join(", ");
}
