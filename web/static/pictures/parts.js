/** The parts of a whole as one bar, with direct labels where they fit, and as a table. */
import { html } from "../vendor/preact-htm.js";
import { duration, percent } from "../lib/numbers.js";
import { Table } from "../lib/table.js";
import { textOn, token, useTheme } from "../lib/theme.js";

/** The token of the colour of each part, the same in every job. */
const COLOURS = {
  input: "class-1", before: "class-2", device: "class-3", launch: "class-4", copies: "muted", waiting: "class-5",
  after: "class-6", tracing: "good", between: "class-7", python: "class-8", unexplained: "line",
};

/** Parts above this share have their label in the bar. */
const LABELLED = 0.08;

const COLUMNS = [
  { key: "part", title: "part", value: (row) => row.name, show: (row) => html`<i class="swatch" style=${{ background: row.colour }}></i>${row.name}`, style: "name" },
  { key: "mean_ns", title: "time/step", value: (row) => row.mean_ns, show: (row) => duration(row.mean_ns), isNumber: true },
  { key: "share", title: "share", value: (row) => row.share, show: (row) => percent(row.share), isNumber: true },
  { key: "evidence", title: "from", value: (row) => row.evidence, style: "wide" },
];
const DETAILS = COLUMNS.slice(1, 3);

/**
 * @param {{parts: {slug: string, name: string, mean_ns: number, share: number, evidence: string, details: any[]}[], caption: string}} properties
 */
export function Parts({ parts, caption }) {
  useTheme();
  const rows = parts.map((part) => ({ ...part, colour: token(COLOURS[part.slug] ?? "line") }));
  const label = rows.map((row) => `${row.name} ${percent(row.share)}`).join(", ");
  return html`<div>
    <div class="parts" role="img" aria-label=${label}>
      ${rows
        .filter((row) => row.share > 0)
        .map(
          (row) =>
            html`<div key=${row.name} class=${row.share > LABELLED ? "labelled" : ""} title=${`${row.name}: ${duration(row.mean_ns)}, ${percent(row.share)}`} style=${{ flexGrow: row.share, flexBasis: 0, background: row.colour, color: textOn(row.colour) }}>
              ${row.share > LABELLED ? html`<span>${row.name} ${percent(row.share)}</span>` : ""}
            </div>`,
        )}
    </div>
    <${Table} columns=${COLUMNS} rows=${rows} caption=${caption} keyOf=${(row) => row.name} hasDetail=${(row) => row.details.length > 0} detail=${(row) => html`<${Details} row=${row} />`} />
  </div>`;
}

function Details({ row }) {
  const columns = [{ key: "name", title: "what", value: (part) => part.name, style: "name" }, ...DETAILS];
  return html`<${Table} columns=${columns} rows=${row.details} caption=${row.name} keyOf=${(part) => part.name} />`;
}
