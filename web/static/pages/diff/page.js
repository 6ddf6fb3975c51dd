/** Two jobs side by side, and what became slower or faster. */
import { html, useEffect } from "../../vendor/preact-htm.js";
import { isReport, useDocument } from "../../lib/documents.js";
import { Bar, Figures, Notices, Section } from "../../lib/layout.js";
import { changeText, cores, count, dateAndTime, duration, percent } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";

const RUNS = [
  { key: "side", title: "", value: (row) => row.side },
  { key: "name", title: "job", value: (row) => row.name, show: (row) => (isReport ? row.name : html`<a href=${`/job/${row.job}`}>${row.name || "-"}</a>`), style: "name" },
  { key: "id", title: "id", value: (row) => row.job, show: (row) => row.job.slice(0, 8), style: "wide" },
  { key: "host", title: "host", value: (row) => row.host },
  { key: "started_ns", title: "start", value: (row) => row.started_ns, show: (row) => dateAndTime(row.started_ns), isNumber: true, style: "wide" },
  { key: "steps", title: "steps", value: (row) => row.steps, show: (row) => count(row.steps), isNumber: true },
  { key: "step_ns", title: "median step", value: (row) => row.step_ns, show: (row) => duration(row.step_ns), isNumber: true },
  { key: "others_cores", title: "CPUs used by others", value: (row) => row.others_cores, show: (row) => cores(row.others_cores), isNumber: true, style: "wide" },
];
const DIFFERENCES = [
  { key: "what", title: "what differs", value: (row) => row.what },
  { key: "before", title: "before", value: (row) => String(row.before), style: "name" },
  { key: "after", title: "after", value: (row) => String(row.after), style: "name" },
];

const PARTS = [
  { key: "part", title: "part", value: (row) => row.name, style: "name" },
  { key: "before_ns", title: "before", value: (row) => row.before_ns, show: (row) => duration(row.before_ns), isNumber: true },
  { key: "after_ns", title: "after", value: (row) => row.after_ns, show: (row) => duration(row.after_ns), isNumber: true },
  { key: "change_ns", title: "change", value: changeNs, show: (row) => signed(changeNs(row)), isNumber: true },
];

function signedPercent(ratio) {
  if (ratio === null || ratio === undefined) return "-";
  return `${ratio > 1 ? "+" : ""}${percent(ratio - 1)}`;
}

function changeNs(row) {
  return (row.after_ns ?? 0) - (row.before_ns ?? 0);
}

function changeClass(row) {
  if (!row.significant) return row.significant === false ? "muted" : ""; // null: noise is unknown, or an op is new or gone
  return (row.own_ratio ?? row.ratio) > 1 ? "bad" : "good";
}

function opColumns(most) {
  return [
    { key: "op", title: "op", value: (row) => row.op, style: "name" },
    { key: "device", title: "device", value: (row) => row.device },
    { key: "before_ns", title: "before", value: (row) => row.before_ns, show: (row) => duration(row.before_ns), isNumber: true },
    { key: "after_ns", title: "after", value: (row) => row.after_ns, show: (row) => duration(row.after_ns), isNumber: true },
    { key: "change_ns", title: "change", value: changeNs, show: (row) => signed(changeNs(row)), isNumber: true, style: "wide" },
    { key: "bar", title: "", value: () => null, show: (row) => html`<span class="share" style=${{ width: `${Math.max(1, (Math.abs(changeNs(row)) / most) * 100)}px`, background: changeNs(row) > 0 ? "var(--class-6)" : "var(--class-3)" }}></span>`, style: "share-cell" },
    { key: "ratio", title: "ratio", value: (row) => row.ratio, show: (row) => signedPercent(row.ratio), isNumber: true, style: "wide" },
    { key: "own_ratio", title: "own", value: (row) => row.own_ratio, show: (row) => html`<span class=${changeClass(row)}>${row.before_ns === null ? "new" : row.after_ns === null ? "gone" : signedPercent(row.own_ratio)}</span>`, isNumber: true, hint: "without the factor that all ops have in common" },
    { key: "visible", title: "visible from", value: (row) => row.visible, show: (row) => percent(row.visible), isNumber: true, style: "wide", hint: "the smallest change that these runs can show" },
    { key: "significant", title: "beyond noise", value: (row) => row.significant, show: (row) => ({ true: "yes", false: "no" })[String(row.significant)] ?? "unknown", style: "wide" },
  ];
}

function signed(ns) {
  return ns < 0 ? `-${duration(-ns)}` : `+${duration(ns)}`;
}

/** The page. */
export function DiffPage({ before, after }) {
  const { document: diff, problem } = useDocument(`/api/diff/${before}/${after}`);
  useEffect(() => {
    if (diff !== null) document.title = `${diff.before[0].name} and ${diff.after[0].name} - tfprof`;
  }, [diff]);
  const bar = html`<${Bar} crumbs=${html`<span class="muted">/</span><b>difference</b>`} />`;
  if (diff === null) return html`${bar}<main id="content"><${Notices} problem=${problem?.message} /><p class="muted">${problem ? "" : "Comparing …"}</p></main>`;
  const runs = [...diff.before.map((run) => ({ ...run, side: "before" })), ...diff.after.map((run) => ({ ...run, side: "after" }))];
  const most = Math.max(1, ...diff.ops.map((row) => Math.abs(changeNs(row))));
  const { step } = diff;
  return html`${bar}
    <main id="content">
      <${Notices} problem=${problem?.message} />
      <div class="head"><div><h1><bdi>${diff.before[0].name}</bdi> → <bdi>${diff.after[0].name}</bdi></h1></div>
        ${!isReport && html`<div class="actions"><a class="button" href=${`/diff/${after}/${before}`}>Swap</a></div>`}</div>
      ${step &&
      html`<${Figures} figures=${[
        ["median step before", duration(step.before_ns), null],
        ["median step after", duration(step.after_ns), null],
        ["change", html`<span class=${changeClass(step)}>${changeText(step.ratio)}</span>`, step.significant === null ? "one run a side: noise is unknown" : step.significant ? "beyond noise" : "within noise"],
        ["all ops alike", changeText(diff.common_ratio), "which the column own leaves out"],
      ]} />`}
      <${Section} id="runs" title="Runs"><${Table} columns=${RUNS} rows=${runs} caption="the runs that are compared" /></${Section}>
      ${diff.differences.length > 0 &&
      html`<${Section} id="differences" title="What differs exactly"><${Table} columns=${DIFFERENCES} rows=${diff.differences} caption="facts without noise" /></${Section}>`}
      ${diff.parts.length > 0 &&
      html`<${Section} id="parts" title="Parts of a step"><${Table} columns=${PARTS} rows=${diff.parts} caption="mean times in a step" keyOf=${(row) => row.slug} /></${Section}>`}
      <${Section} id="ops" title="Ops" note="times of a step, in the order of tfprof diff">
        ${diff.ops.length > 0 && html`<${Table} columns=${opColumns(most)} rows=${diff.ops} caption="op types by change" keyOf=${(row) => `${row.op} ${row.device}`} />`}
        ${!(isReport && diff.ops.length) && diff.ops.every((row) => row.before_ns === null || row.after_ns === null) && html`<p class="muted">No op is compared: a side has no traced steps of its main kind.</p>`}
        ${diff.partial_ops.length > 0 && html`<p class="muted small">Not compared, since not every run has them: ${diff.partial_ops.join(", ")}.</p>`}
      </${Section}>
    </main>`;
}
