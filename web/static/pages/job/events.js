/** Alerts, events and losses. */
import { html } from "../../vendor/preact-htm.js";
import { useDocument } from "../../lib/documents.js";
import { Missing, Section } from "../../lib/layout.js";
import { count, dateAndTime } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";
import { lostText } from "./state.js";

const ALERTS = [
  { key: "found_ns", title: "found", value: (row) => row.found_ns, show: (row) => dateAndTime(row.found_ns) },
  { key: "slug", title: "alert", value: (row) => row.slug },
  { key: "text", title: "what happened", value: (row) => row.text, style: "name" },
];
const EVENTS = [
  { key: "slug", title: "event", value: (row) => row.slug },
  { key: "text", title: "what happened", value: (row) => row.text, style: "name" },
  { key: "count", title: "count", value: (row) => row.count, show: (row) => count(row.count), isNumber: true },
];

/** The section. */
export function Events({ base, version, job }) {
  const { document: alerts, problem: noAlerts } = useDocument(`${base}/alerts`, version);
  const { document: steps, problem: noSteps } = useDocument(`${base}/steps`, version);
  return html`<${Section} id="events" title="Alerts, events and losses" note=${job.lost === 0 ? "nothing was lost" : `${lostText(job)} lost`}>
    ${alerts === null ? html`<${Missing} problem=${noAlerts} />` : alerts.alerts.length ? html`<${Table} columns=${ALERTS} rows=${alerts.alerts} sort="found_ns" caption="alerts, the latest first" />` : html`<p class="muted">No alerts.</p>`}
    ${steps === null ? html`<${Missing} problem=${noSteps} />` : steps.events.length ? html`<${Table} columns=${EVENTS} rows=${steps.events} caption="events" />` : null}
  </${Section}>`;
}
