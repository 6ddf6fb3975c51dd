/** A tree as a table whose rows open. */
import { html, useMemo, useState } from "../vendor/preact-htm.js";
import { CopyButton } from "../lib/table.js";
import { csv } from "../lib/copy.js";
import { duration, percent } from "../lib/numbers.js";

/** Number of rows that are shown at most. */
const ROWS_MAX = 400;

function rowsOf(root, open) {
  const rows = [];
  const pending = [[root, 0, root.name]];
  while (pending.length) {
    const [node, depth, path] = pending.pop();
    rows.push({ node, depth, path });
    if (open.has(path)) {
      for (const child of [...node.children].sort((a, b) => a.ns - b.ns)) pending.push([child, depth + 1, `${path}/${child.name}`]);
    }
  }
  return rows;
}

/** Number of rows that are open at first. */
const FIRST_ROWS = 24;

/** The paths from the root whose entries hold at least half of the entry above, as long as few rows are open. */
function mainPaths(root) {
  const paths = new Set();
  let [node, path, rows] = [root, root.name, 0];
  while (node && (rows === 0 || rows + node.children.length <= FIRST_ROWS)) {
    rows += node.children.length;
    paths.add(path);
    const next = node.children.find((child) => child.ns >= node.ns / 2);
    path = next ? `${path}/${next.name}` : "";
    node = next;
  }
  return paths;
}

/** The tree of `root`: name, time with everything below, share, self (without everything below). */
export function Tree({ root, caption, name = "name", style = "" }) {
  const first = useMemo(() => mainPaths(root), [root]);
  const [chosen, setChosen] = useState(/** @type {Map<string, boolean>} */ (new Map()));
  const open = new Set([...first, ...chosen.keys()].filter((path) => chosen.get(path) ?? true));
  const rows = rowsOf(root, open);
  const toggle = (path) => setChosen((old) => new Map(old).set(path, !open.has(path)));
  const text = () =>
    csv(["path", "ns", "self_ns"], rows.map(({ node, path }) => [path, node.ns, node.self]));
  return html`<div>
    <div class="scroll" tabindex="0" role="region" aria-label=${caption}>
      <table class=${`tree ${style}`}>
        <caption>${caption} <${CopyButton} text=${text} label="Copy as CSV" /></caption>
        <thead><tr><th scope="col">${name}</th><th scope="col" class="number">time/step</th><th scope="col" class="number">share</th>
          <th scope="col" class="number wide">self</th></tr></thead>
        <tbody>
          ${rows.slice(0, ROWS_MAX).map(
            ({ node, depth, path }) => html`<tr key=${path}>
              <td class="name" style=${{ "--depth": Math.min(depth, 24) }}>
                ${node.children.length
                  ? html`<button type="button" class="fold" aria-expanded=${open.has(path)} aria-label=${`parts of ${node.name}`} onClick=${() => toggle(path)}>${open.has(path) ? "▾" : "▸"}</button>`
                  : html`<span class="fold"> </span>`}
                ${node.name}
              </td>
              <td class="number">${duration(node.ns)}</td>
              <td class="number">${percent(node.share)}</td>
              <td class="number wide">${duration(node.self)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${rows.length > ROWS_MAX && html`<p class="muted">The first ${ROWS_MAX} of ${rows.length} open rows are shown.</p>`}
  </div>`;
}
