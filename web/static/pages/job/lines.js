/** The lines of Python that made the ops, in the tree of calls. */
import { html, useMemo, useState } from "../../vendor/preact-htm.js";
import { isReport, useDocument } from "../../lib/documents.js";
import { Section, useSection } from "../../lib/layout.js";
import { counted } from "../../lib/numbers.js";
import { Flame } from "../../pictures/flame.js";
import { Tree } from "../../pictures/tree.js";
import { treeOf } from "../../lib/trees.js";

/** Rows below this share of the whole are left out. */
const LEAST = 0.001;

/** The section: the user's own lines, or with those of packages. */
export function Lines({ base, version }) {
  const [isAll, setAll] = useState(false);
  const [own, instead] = useSection("lines", "Source lines", `${base}/code`, version);
  const all = useDocument(isAll ? `${base}/code?show_name_regexes=.*` : null, version).document;
  const document = isAll && all !== null ? all : own;
  const root = useMemo(() => (document === null ? null : treeOf(document, "all ops", LEAST)), [document]);
  if (root === null) return instead;
  if (!root.children.length) return null;
  const left = own.left_out.library_calls;
  return html`<${Section} id="lines" title="Source lines" note="lines that made the ops, with everything that they call">
    ${!isReport && left > 0
      ? html`<div class="tools">
          <button type="button" aria-pressed=${!isAll} onClick=${() => setAll(false)}>your lines</button>
          <button type="button" aria-pressed=${isAll} onClick=${() => setAll(true)}>with ${counted(left, "call")} in packages</button>
        </div>`
      : null}
    <${Flame} key=${String(isAll)} root=${root} label="time of the lines" />
    <${Tree} key=${`tree ${isAll}`} root=${root} caption="lines, the largest first" name="line" style="own" />
  </${Section}>`;
}
