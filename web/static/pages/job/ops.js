/** The op types by time, with their nodes. */
import { html, useMemo } from "../../vendor/preact-htm.js";
import { isReport, useDocument } from "../../lib/documents.js";
import { Section } from "../../lib/layout.js";
import { count, duration, percent, quantity, size } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";
import { shapesOf } from "../../lib/trees.js";

/** Number of nodes of an op type that are shown. */
const NODES_MAX = 30;

/** The op types on their devices, each with its nodes there and the operations of these; a report has only some nodes. */
export function rowsOf(ops, types) {
  return ops.map((row) => {
    const type = types?.get(row.op);
    const nodes = type?.nodes.filter((node) => (node.devices.join(",") || "-") === row.device) ?? [];
    const isAlone = ops.every((other) => other === row || other.op !== row.op);
    const sum = isReport ? null : nodes.reduce((whole, node) => whole + node.float_ops, 0);
    return { ...row, nodes, float_ops: isAlone ? type?.float_ops : sum };
  });
}

function columns(most) {
  return [
    { key: "op", title: "op", value: (row) => row.op, style: "name" },
    { key: "device", title: "device", value: (row) => row.device },
    { key: "ns", title: "time/step", value: (row) => row.ns, show: (row) => duration(row.ns), isNumber: true },
    { key: "share", title: "share", value: (row) => row.share, show: (row) => percent(row.share), isNumber: true },
    { key: "bar", title: "", value: () => null, show: (row) => html`<span class="share" style=${{ width: `${Math.max(1, (row.ns / most) * 100)}px` }}></span>`, style: "share-cell" },
    { key: "least_ns", title: "min", value: (row) => row.least_ns, show: (row) => duration(row.least_ns), isNumber: true, style: "wide" },
    { key: "most_ns", title: "max", value: (row) => row.most_ns, show: (row) => duration(row.most_ns), isNumber: true, style: "wide" },
    { key: "calls", title: "calls/step", value: (row) => row.calls, show: (row) => quantity(row.calls), isNumber: true, style: "wide" },
    { key: "bytes", title: "memory", value: (row) => row.bytes, show: (row) => size(row.bytes), isNumber: true, style: "wide", hint: "requested bytes a step" },
    { key: "float_ops", title: "flops", value: (row) => row.float_ops || null, show: (row) => (row.float_ops ? quantity(row.float_ops) : "-"), isNumber: true, style: "wide", hint: "operations a step, of these nodes" },
    { key: "line", title: "line", value: (row) => row.line, show: (row) => html`<span class="mono">${row.line || "-"}</span>`, style: "wide" },
  ];
}

/** The section. */
export function Ops({ base, version, job }) {
  const { document, problem } = useDocument(`${base}/op`, version);
  const { ops, steps, kinds, why } = job.top_ops;
  const rows = useMemo(() => rowsOf(ops, document && new Map(document.rows.map((row) => [row.name, row]))), [document, ops]);
  if (!ops.length) return html`<${Section} id="ops" title="Ops"><p class="muted">${why || "No ops."}</p></${Section}>`;
  const most = Math.max(...ops.map((row) => row.ns));
  const note = `medians over ${count(steps)} traced ${Object.keys(kinds).join(", ")} step${steps === 1 ? "" : "s"}`;
  return html`<${Section} id="ops" title="Ops" note=${note}>
    <${Table} columns=${columns(most)} rows=${rows} sort="ns" caption="op types" keyOf=${(row) => `${row.op} ${row.device}`} detail=${({ nodes }) => (document === null ? html`<p class="muted">${problem?.message ?? "Reading …"}</p>` : html`<${Nodes} nodes=${nodes} />`)} />
  </${Section}>`;
}

const NODE_COLUMNS = [
  { key: "node", title: "node", value: (node) => node.name, style: "name" },
  { key: "ns", title: "time/step", value: (node) => node.time_ns, show: (node) => duration(node.time_ns), isNumber: true },
  { key: "runs", title: "runs", value: (node) => node.runs, show: (node) => quantity(node.runs), isNumber: true },
  { key: "shapes", title: "input shapes", value: shapesOf },
  { key: "float_ops", title: "flops", value: (node) => node.float_ops || null, show: (node) => (node.float_ops ? quantity(node.float_ops) : "-"), isNumber: true },
];

function Nodes({ nodes }) {
  if (!nodes.length) return html`<p class="muted">No nodes of this op are listed.</p>`;
  return html`<${Table} columns=${NODE_COLUMNS} rows=${nodes} sort="ns" limit=${NODES_MAX} caption="nodes of this type" keyOf=${(node) => node.name} />`;
}
