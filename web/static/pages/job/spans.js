/** The phases of a job: fits, epochs, evaluations. */
import { html } from "../../lib/dom.js";
import { useDocument } from "../../lib/documents.js";
import { Section } from "../../lib/layout.js";
import { count, duration, timeOfDay } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";

const COLUMNS = [
  { key: "kind", title: "span", value: (row) => `${row.kind} ${row.label}`.trim(), show: (row) => html`<span class="tree-name" style=${{ paddingLeft: `${row.depth * 16}px` }}>${row.kind} ${row.label}</span>`, style: "name" },
  { key: "count", title: "count", value: (row) => row.count, show: (row) => count(row.count), isNumber: true },
  { key: "total_ns", title: "time", value: (row) => row.total_ns, show: (row) => `${duration(row.total_ns)}${row.running ? " so far" : ""}`, isNumber: true },
  { key: "mean_ns", title: "mean", value: (row) => row.total_ns / row.count, show: (row) => (row.count > 1 ? duration(row.total_ns / row.count) : "-"), isNumber: true, style: "wide" },
  { key: "min_ns", title: "min", value: (row) => row.min_ns, show: (row) => (row.count > 1 ? duration(row.min_ns) : "-"), isNumber: true, style: "wide" },
  { key: "max_ns", title: "max", value: (row) => row.max_ns, show: (row) => (row.count > 1 ? duration(row.max_ns) : "-"), isNumber: true, style: "wide" },
  { key: "start_ns", title: "start", value: (row) => row.start_ns, show: (row) => timeOfDay(row.start_ns), isNumber: true, style: "wide" },
];

/** The section. */
export function Spans({ base, version }) {
  const { document } = useDocument(`${base}/spans`, version);
  if (!document?.spans.length) return null;
  return html`<${Section} id="spans" title="Spans">
    <${Table} columns=${COLUMNS} rows=${document.spans} caption="fits, epochs, evaluations, runs" />
  </${Section}>`;
}
