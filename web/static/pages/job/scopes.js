/** The tree of scopes as a flame graph and as a table. */
import { html, useMemo } from "../../vendor/preact-htm.js";
import { Section, useSection } from "../../lib/layout.js";
import { Flame } from "../../pictures/flame.js";
import { Tree } from "../../pictures/tree.js";
import { treeOf } from "../../lib/trees.js";

/** Nodes below this share of the whole are left out. */
const LEAST = 0.001;

/** The section. */
export function Scopes({ base, version }) {
  const [document, instead] = useSection("scopes", "Scopes", `${base}/scope`, version);
  const root = useMemo(() => (document === null ? null : treeOf(document, "all ops", LEAST)), [document]);
  if (root === null) return instead;
  if (!root.children.length) return null;
  return html`<${Section} id="scopes" title="Scopes" note="layers, gradients, optimizer: names with everything below; at least 0.1 % of the time">
    <${Flame} root=${root} label="time of the scopes" />
    <${Tree} root=${root} caption="scopes, the largest first" name="scope" />
  </${Section}>`;
}
