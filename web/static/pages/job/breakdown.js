/** The parts of a step: input, compute, copies, what is between steps. */
import { html, useState } from "../../vendor/preact-htm.js";
import { Section, useSection } from "../../lib/layout.js";
import { count, counted, duration } from "../../lib/numbers.js";
import { Parts } from "../../pictures/parts.js";

/** What is beside the parts: titles as in `tfprof breakdown`, and names in the document. */
const BESIDE = [["Input pipeline, beside the steps", "pipeline"], ["Parts that the code marks", "marked"]];

/** The section; nothing if no step was timed. */
export function Breakdown({ base, version }) {
  const [document, instead] = useSection("parts", "Parts of a step", `${base}/breakdown`, version);
  const [chosen, setChosen] = useState(0);
  if (document === null) return instead;
  const { kinds } = document;
  const kind = kinds[chosen] ?? kinds[0];
  if (kind === undefined || !kind.parts.length) return null;
  const caption = `from start to start ${duration(kind.period_ns)}, mean of ${count(kind.steps)} ${kind.kind} steps${kind.traced_steps ? `, their inside from ${counted(kind.traced_steps, "traced step")}` : ""}`;
  return html`<${Section} id="parts" title="Parts of a step" note=${kind.verdict}>
    ${kinds.length > 1 &&
    html`<div class="tools">
      ${kinds.map((each, at) => html`<button type="button" key=${each.kind} aria-pressed=${each === kind} onClick=${() => setChosen(at)}>${each.kind}</button>`)}
    </div>`}
    <${Parts} parts=${kind.parts} caption=${caption} />
    ${BESIDE.filter(([, name]) => kind[name].length).map(([title, name]) => html`<p key=${name}>${title}: ${kind[name].map((part) => `${part.name} ${duration(part.mean_ns)}`).join(", ")} a step.</p>`)}
    ${kind.notes.map((text) => html`<p class="muted small" key=${text}>${text}</p>`)}
  </${Section}>`;
}
