/** The phases of a job (fits, epochs, evaluations), and what its Python does beside the ops. */
import { html } from "../../vendor/preact-htm.js";
import { Section, useSection } from "../../lib/layout.js";
import { count, duration, percent, timeOfDay } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";

const COLUMNS = [
  { key: "kind", title: "span", value: (row) => `${row.kind} ${row.label}`.trim(), show: (row) => indented(row, `${row.kind} ${row.label}`), style: "name" },
  { key: "count", title: "count", value: (row) => row.count, show: (row) => count(row.count), isNumber: true },
  { key: "total_ns", title: "total", value: (row) => row.total_ns, show: (row) => `${row.running ? "not ended" : duration(row.total_ns)}`, isNumber: true },
  { key: "mean_ns", title: "mean", value: (row) => row.mean_ns, show: (row) => (row.count > 1 ? duration(row.mean_ns) : "-"), isNumber: true, style: "wide" },
  { key: "min_ns", title: "min", value: (row) => row.min_ns, show: (row) => (row.count > 1 ? duration(row.min_ns) : "-"), isNumber: true, style: "wide" },
  { key: "max_ns", title: "max", value: (row) => row.max_ns, show: (row) => (row.count > 1 ? duration(row.max_ns) : "-"), isNumber: true, style: "wide" },
  { key: "start_ns", title: "start", value: (row) => row.start_ns, show: (row) => (row.start_ns === null ? "-" : timeOfDay(row.start_ns)), isNumber: true, style: "wide" },
];

const ACTIVITIES = [
  { key: "activity", title: "activity", value: (row) => `${row.category} ${row.name}`, show: (row) => indented(row, `${row.category} ${row.name}`), style: "name" },
  { key: "count", title: "count", value: (row) => row.count, show: (row) => count(row.count), isNumber: true },
  { key: "total_ns", title: "total", value: (row) => row.total_ns, show: (row) => duration(row.total_ns), isNumber: true },
  { key: "self_ns", title: "self", value: (row) => row.self_ns, show: (row) => duration(row.self_ns), isNumber: true, style: "wide" },
  { key: "median_ns", title: "median", value: (row) => row.median_ns, show: (row) => duration(row.median_ns), isNumber: true, style: "wide" },
  { key: "max_ns", title: "max", value: (row) => row.max_ns, show: (row) => duration(row.max_ns), isNumber: true, style: "wide" },
  { key: "share", title: "share", value: (row) => row.share, show: (row) => percent(row.share), isNumber: true },
];

function indented(row, text) {
  return html`<span class="tree-name" style=${{ paddingLeft: `${row.depth * 16}px` }}>${text}</span>`;
}

/** The section. */
export function Spans({ base, version }) {
  const [document, instead] = useSection("spans", "Spans", `${base}/spans`, version);
  if (document === null) return instead;
  if (!document.spans.length && !document.activities.length) return null;
  return html`<${Section} id="spans" title="Spans">
    ${document.spans.length > 0 && html`<${Table} columns=${COLUMNS} rows=${document.spans} caption="fits, epochs, evaluations, runs" />`}
    ${document.activities.length > 0 && html`<${Table} columns=${ACTIVITIES} rows=${document.activities} caption="activities: what the job's Python does beside the ops" />`}
  </${Section}>`;
}
