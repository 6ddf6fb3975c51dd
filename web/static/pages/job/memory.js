/** What holds the memory at the peak, by device and allocator, what grows, and host memory. */
import { html } from "../../vendor/preact-htm.js";
import { Section, useSection } from "../../lib/layout.js";
import { count, counted, duration, percent, size } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";

/** Number of scopes, lines and parts of host memory that are shown at first. */
const SUMS_MAX = 8;
const BEFORE = "(from before the step)";
const USES = { output: "outputs", temporary: "temporary", persistent: "persistent", before: "from before the step" };

/** The columns after the name: bytes, and their share of the peak as number and bar. */
function amounts(whole) {
  const share = (row) => row.bytes / Math.max(1, whole);
  return [
    { key: "bytes", title: "bytes", value: (row) => row.bytes, show: (row) => size(row.bytes), isNumber: true },
    { key: "share", title: "share", value: share, show: (row) => percent(share(row)), isNumber: true },
    { key: "bar", title: "", value: () => null, show: (row) => (row.bytes > 0 ? html`<span class="share" style=${{ width: `${Math.max(1, share(row) * 100)}px` }}></span>` : ""), style: "share-cell" },
  ];
}

function holderColumns(whole) {
  return [
    { key: "node", title: "held at the peak", value: (row) => row.node || BEFORE, style: "name" },
    { key: "op", title: "op", value: (row) => row.op, style: "wide" },
    { key: "use", title: "use", value: (row) => (row.use === "before" ? "" : row.use), style: "wide" },
    ...amounts(whole),
    { key: "line", title: "line", value: (row) => row.line, show: (row) => html`<span class="mono">${row.line || "-"}</span>`, style: "wide" },
  ];
}

/** The section; nothing if nothing is known. */
export function Memory({ base, version }) {
  const [document, instead] = useSection("memory", "Memory at the peak", `${base}/memory`, version);
  if (document === null) return instead;
  if (!(document.allocators.length || document.growth.length || document.host)) return null;
  const verdict = document.verdict.charAt(0).toUpperCase() + document.verdict.slice(1);
  return html`<${Section} id="memory" title="Memory at the peak">
    <p>${verdict}.</p>
    ${document.growth.length
      ? html`<ul class="findings">${document.growth.map((finding, at) => html`<${Growth} key=${at} finding=${finding} />`)}</ul>`
      : null}
    ${document.allocators.map((memory) => html`<${Allocator} key=${`${memory.device} ${memory.allocator}`} memory=${memory} />`)}
    <${Host} host=${document.host} />
  </${Section}>`;
}

function Growth({ finding }) {
  return html`<li><p>${finding.text}</p>
    <dl>
      ${finding.line ? html`<dt>At</dt><dd class="mono">${finding.line}</dd>` : null}
      <dt>To do</dt><dd>${finding.remedy}</dd>
    </dl></li>`;
}

function Allocator({ memory }) {
  const place = memory.allocator ? `${memory.device} (${memory.allocator})` : memory.device;
  const [least, most] = [size(memory.least_peak_bytes), size(memory.most_peak_bytes)];
  const of = memory.traced_steps > 1 ? `; that of ${count(memory.traced_steps)} traced steps is ${least === most ? least : `${least} to ${most}`}` : "";
  const before = memory.before_bytes ? [{ node: "", op: "", use: "before", line: "", bytes: memory.before_bytes }] : [];
  const sums = [
    ["scope", memory.scopes],
    ["line", memory.lines],
    ["use", Object.entries(memory.uses).map(([use, bytes]) => ({ name: USES[use] ?? use, bytes }))],
  ].filter(([, rows]) => rows.length);
  return html`<div class="part">
    <h3>${place}: ${size(memory.peak_bytes)}</h3>
    <p class="muted">${duration(memory.after_ns)} after the start of ${memory.kind} step ${count(memory.step)}${of}</p>
    <${Table} columns=${holderColumns(memory.peak_bytes)} rows=${[...before, ...memory.holders]} sort="bytes" caption=${`who holds it on ${place}`} />
    <div class="small-multiples">${sums.map(([title, rows]) => html`<${Sums} key=${title} title=${title} rows=${rows} whole=${memory.peak_bytes} caption=${`by ${title} on ${place}`} />`)}</div>
    ${memory.growth ? html`<p>${heldText(place, memory.growth)}</p>` : null}
    ${notesOf(memory).map((text) => html`<p class="muted small" key=${text}>${text}.</p>`)}
  </div>`;
}

function Sums({ title, rows, whole, caption }) {
  const columns = [{ key: title, title, value: (row) => row.name, style: "name" }, ...amounts(whole)];
  return html`<${Table} columns=${columns} rows=${rows} sort="bytes" limit=${SUMS_MAX} caption=${caption} />`;
}

function heldText(place, growth) {
  const kept = growth.kept.map((op) => `${op.name} (${size(op.bytes)})`).join(", ");
  return (
    `What is in use on ${place} before a step grows from ${size(growth.first_bytes)} in step ${count(growth.first_step)} to ${size(growth.last_bytes)} in step ` +
    `${count(growth.last_step)}, ${size(growth.bytes_per_step)} a step. ${kept ? `What a step leaves behind is of ${kept}.` : "No op leaves memory behind in the traced steps."}`
  );
}

function notesOf(memory) {
  return [
    memory.before_bytes === null &&
      `${memory.source === "session" ? "The profiler session" : "RunMetadata"} has the blocks that the step allocates; variables and other data from before it are not known`,
    memory.least_block_bytes && `This allocator reports blocks of ${count(memory.least_block_bytes)} bytes or more; smaller ones are not recorded`,
    memory.fragmentation !== null && `The allocator reports a fragmentation of ${percent(memory.fragmentation)} at the peak`,
  ].filter(Boolean);
}

function Host({ host }) {
  if (host === null) return html`<p class="muted">Host memory: no samples.</p>`;
  const parts = [
    `${size(host.most_bytes)} at most in ${counted(host.samples, "sample")}`,
    host.before_bytes !== null && `${size(host.before_bytes)} before the first step`,
    host.peak_bytes !== null && `${size(host.peak_bytes)} at the peak above`,
    `${size(host.last_bytes)} at the end`,
  ].filter(Boolean);
  const rows = host.unknown_bytes === null ? [] : [...host.known, { name: "not known", bytes: host.unknown_bytes }];
  const isShared = host.peak_bytes !== null && host.unknown_bytes === null;
  return html`<div class="part">
    <h3>Host memory (RSS)</h3>
    <p class="muted">${parts.join(", ")}</p>
    ${isShared ? html`<p class="muted small">${count(host.processes)} processes share this figure; what of it is known is not recorded.</p>` : null}
    ${rows.length
      ? html`<${Sums} title="part" rows=${rows} whole=${host.peak_bytes} caption="resident memory at the peak" />
          <p class="muted small">Not known: Python, NumPy arrays, libraries, data outside of ops, freed memory that is not given back.</p>`
      : null}
  </div>`;
}
