/** The source lines of the ops as code, with the time of each in the margin. */
import { html } from "../../vendor/preact-htm.js";
import { Section, useSection } from "../../lib/layout.js";
import { count, counted, duration, percent } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";
import { Code } from "../../pictures/code.js";

const COLUMNS = [
  { key: "file", title: "file", value: (line) => line.path, show: (line) => line.file, style: "name" },
  { key: "number", title: "line", value: (line) => line.number, isNumber: true },
  { key: "time_ns", title: "time/step", value: (line) => line.time_ns, show: (line) => duration(line.time_ns), isNumber: true },
  { key: "share", title: "share", value: (line) => line.share, show: (line) => (line.share === null ? null : percent(line.share)), isNumber: true },
  { key: "ops", title: "ops", value: (line) => line.ops, show: (line) => count(line.ops), isNumber: true, style: "wide" },
  { key: "layer", title: "layer", value: (line) => line.layer, style: "wide" },
];

/** The section. */
export function Source({ base, version }) {
  const [document, instead] = useSection("source", "Code", `${base}/source`, version);
  if (document === null) return instead;
  if (!document.files.length) return null;
  const rows = document.files.flatMap(({ path, lines }) =>
    lines.filter((line) => line.ops !== null).map((line) => ({ ...line, path, file: path.slice(path.lastIndexOf("/") + 1) })),
  );
  return html`<${Section} id="source" title="Code" note="time of the ops that a line made, with their gradients, without what it calls">
    ${document.files.map((file) => html`<${Code} key=${file.path} file=${file} />`)}
    ${document.left_out ? html`<p class="muted small">Left out: ${counted(document.left_out, "line")} with less time.</p>` : null}
    <${Table} columns=${COLUMNS} rows=${rows} sort="time_ns" caption="lines with time, the largest first" keyOf=${(line) => `${line.path}:${line.number}`} />
  </${Section}>`;
}
