/** Memory, CPU and I/O of the job and of its host over the run, on one axis. */
import { html, useMemo } from "../../vendor/preact-htm.js";
import { Section, useSection } from "../../lib/layout.js";
import { cores, duration, quantity, rate, size } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";
import { Curve, timeOfRun } from "../../pictures/curve.js";

/**
 * How a quantity is shown, by the end of its name.
 * @type {[string, (value: number) => string][]}
 */
const FORMATS = [["_bytes_per_s", rate], ["_bytes", size], ["_cores", cores], ["", quantity]];

/** Titles of quantities. */
const TITLES = { cpu_cores: "CPU, busy cores", rss_bytes: "memory", read_bytes_per_s: "read", write_bytes_per_s: "written", memory_used_bytes: "memory in use",
  iowait_cores: "CPU waiting for I/O", load_1m: "load", swap_used_bytes: "swap in use", disk_read_bytes_per_s: "disk read", disk_write_bytes_per_s: "disk written",
  net_received_bytes_per_s: "network received", net_sent_bytes_per_s: "network sent" };

function formatOf(name) {
  return FORMATS.find(([end]) => name.endsWith(end))[1];
}

function titleOf(name) {
  return TITLES[name] ?? name.replaceAll("_", " ");
}

/** The pictures. A quantity that the job and the host both have is one picture. */
const PICTURES = [["rss_bytes", "memory_used_bytes"], ["cpu_cores", "cpu_cores"], ["read_bytes_per_s", "disk_read_bytes_per_s"], ["write_bytes_per_s", "disk_write_bytes_per_s"], [null, "net_received_bytes_per_s"], [null, "net_sent_bytes_per_s"]];

function lineOf(resource, colour, times) {
  const values = new Map(resource.points.times_ns.map((time, at) => [time, resource.points.mean[at]]));
  return { name: `${resource.scope}`, values: times.map((time) => values.get(time) ?? null), colour };
}

function picturesOf(resources, start) {
  const times = [...new Set(resources.flatMap((each) => each.points.times_ns))].filter((time) => time >= start).sort((a, b) => a - b);
  const find = (scope, name) => resources.find((each) => each.scope === scope && each.name === name);
  return PICTURES.map(([job, host]) => [find("job", job), find("host", host)].filter(Boolean))
    .filter((parts) => parts.length && parts.some((part) => part.points.most.some((value) => value > 0)))
    .map((parts) => ({
      name: parts[0].name,
      times: times.map((time) => (time - start) / 1e9),
      lines: parts.map((part) => lineOf(part, part.scope === "job" ? "class-1" : "class-2", times)),
    }));
}

/** The rows of the table: mean and maximum as in the summary of the job. */
function rowsOf(job) {
  const scopes = { job: job.job_series, host: job.host_series };
  return Object.entries(scopes).flatMap(([scope, all]) => Object.entries(all).map(([name, series]) => ({ scope, name, ...series })));
}

const COLUMNS = [
  { key: "scope", title: "of", value: (row) => row.scope },
  { key: "name", title: "quantity", value: (row) => row.name, show: (row) => titleOf(row.name), style: "name" },
  { key: "mean", title: "mean", value: (row) => row.mean, show: (row) => (row.mean === null ? "-" : formatOf(row.name)(row.mean)), isNumber: true },
  { key: "max", title: "max", value: (row) => row.max, show: (row) => (row.max === null ? "-" : formatOf(row.name)(row.max)), isNumber: true },
];

/** The section. */
export function Hosts({ base, version, job }) {
  const [document, instead] = useSection("host", "Memory, CPU and I/O", `${base}/curves`, version);
  const pictures = useMemo(() => picturesOf(document?.resource_curves ?? [], job.started_ns), [document, job.started_ns]);
  if (document === null) return instead;
  if (!document.resource_curves.length) return null;
  return html`<${Section} id="host" title="Memory, CPU and I/O" note="one sample a second; the pictures share their time axis">
    <div class="small-multiples">
      ${pictures.map(
        ({ name, times, lines }) => html`<div key=${name}><h3>${titleOf(name)}</h3>
          <${Curve} xs=${times} lines=${lines} height=${150} format=${formatOf(name)} formatX=${timeOfRun} label=${`${titleOf(name)} over the run; the table below has mean and maximum`} group="host" /></div>`,
      )}
    </div>
    <${Table} columns=${COLUMNS} rows=${rowsOf(job)} caption="resource use over the run" keyOf=${(row) => `${row.scope} ${row.name}`} />
    ${document.damaged.map((text) => html`<p class="notice" key=${text}>${text}</p>`)}
  </${Section}>`;
}
