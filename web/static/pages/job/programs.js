/** The programs that XLA compiled, each with the ops that went into it. */
import { html } from "../../vendor/preact-htm.js";
import { Section, useSection } from "../../lib/layout.js";
import { count, counted, duration, percent } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";

const COLUMNS = [
  { key: "program", title: "program", value: (row) => row.name, style: "name" },
  { key: "ns", title: "time/step", value: (row) => row.ns, show: (row) => duration(row.ns), isNumber: true },
  { key: "share", title: "share", value: (row) => row.share, show: (row) => percent(row.share), isNumber: true },
  { key: "variants", title: "variants", value: (row) => row.variants || null, show: (row) => (row.variants ? count(row.variants) : null), isNumber: true, style: "wide", hint: "programs, such as one for each shape" },
  { key: "first_runs", title: "first runs", value: (row) => row.first_runs, show: (row) => (row.first_runs === null ? null : count(row.first_runs)), isNumber: true, style: "wide", hint: "calls that made a graph and compiled it" },
  { key: "first_runs_ns", title: "their time", value: (row) => row.first_runs_ns, show: (row) => duration(row.first_runs_ns), isNumber: true, style: "wide" },
];
const OPS = [
  { key: "node", title: "op", value: (op) => op.node, style: "name" },
  { key: "op", title: "type", value: (op) => op.op, style: "wide" },
  { key: "ns", title: "time/step", value: (op) => op.ns, show: (op) => (op.ns === null ? "" : duration(op.ns)), isNumber: true },
  { key: "instructions", title: "instructions", value: (op) => op.instructions || null, show: (op) => (op.instructions ? count(op.instructions) : null), isNumber: true, style: "wide" },
  { key: "fused_into", title: "fused into", value: (op) => op.fused_into, style: "name wide" },
  { key: "line", title: "line", value: (op) => op.line, show: (op) => html`<span class="mono">${op.line || "-"}</span>`, style: "wide" },
];

/** The section; nothing if XLA compiled nothing. */
export function Programs({ base, version, job }) {
  const [document, instead] = useSection("programs", "Programs compiled by XLA", job.compiled ? `${base}/compiled` : null, version);
  if (document === null) return instead;
  if (!document.programs.length) return null;
  return html`<${Section} id="programs" title="Programs compiled by XLA" note=${`in ${counted(document.steps, "traced step")}`}>
    <${Table} columns=${COLUMNS} rows=${document.programs} caption="programs, the longest time first" keyOf=${(row) => row.name} detail=${(row) => html`<${Ops} program=${row} />`} />
  </${Section}>`;
}

function Ops({ program }) {
  if (!program.ops.length) return html`<p class="muted">TensorFlow did not record which ops went into it.</p>`;
  return html`<div>
    <${Table} columns=${OPS} rows=${program.ops} sort="ns" caption=${`ops of ${program.name}`} />
    ${program.ops.every((op) => op.ns === null) ? html`<p class="muted small">TensorFlow recorded the time of the whole program only.</p>` : null}
  </div>`;
}
