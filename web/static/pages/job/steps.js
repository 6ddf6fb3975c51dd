/** Step times over the whole run, and their percentiles. */
import { html, useMemo, useState } from "../../vendor/preact-htm.js";
import { isReport, useDocument } from "../../lib/documents.js";
import { Missing, Section } from "../../lib/layout.js";
import { count, duration } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";
import { Curve, timeOfRun } from "../../pictures/curve.js";

const COLUMNS = [
  { key: "kind", title: "steps", value: (row) => [row.kind, row.call].filter(Boolean).join(" "), style: "name" },
  { key: "count", title: "count", value: (row) => row.count, show: (row) => count(row.count), isNumber: true },
  ...[["p50_ns", "median"], ["p90_ns", "p90"], ["p99_ns", "p99"], ["min_ns", "min"], ["max_ns", "max"]].map(([key, title], at) => ({
    key, title, value: (row) => row.untraced?.[key] ?? null, show: (row) => duration(row.untraced?.[key]), isNumber: true, style: at === 1 || at > 2 ? "wide" : "",
  })),
  { key: "traced", title: "traced", value: (row) => row.traced?.count ?? 0, show: (row) => count(row.traced?.count ?? 0), isNumber: true },
  { key: "traced_p50_ns", title: "median traced", value: (row) => row.traced?.p50_ns ?? null, show: (row) => duration(row.traced?.p50_ns), isNumber: true, style: "wide" },
  { key: "failed", title: "failed", value: (row) => row.failed, show: (row) => count(row.failed), isNumber: true, style: "wide" },
];

/** Number of links to traced steps. */
const LINKS = 12;

/** The points of a curve with their neighbours on one axis: [time, least, mean, most, traced]. */
function merged(curve, start) {
  const rows = new Map();
  for (const [points, name] of [[curve.normal, "normal"], [curve.traced, "traced"]]) {
    points?.times_ns.forEach((time, at) => {
      rows.set(time, { ...rows.get(time), [name]: { least: points.least[at], mean: points.mean[at], most: points.most[at] } });
    });
  }
  const times = [...rows.keys()].sort((a, b) => a - b);
  const at = (name, part) => times.map((time) => rows.get(time)[name]?.[part] ?? null);
  return { times: times.map((time) => (time - start) / 1e9), mean: at("normal", "mean"), least: at("normal", "least"), most: at("normal", "most"), traced: at("traced", "mean") };
}

/** A value above which the picture is cut, since a long first step would flatten all others; null if nothing is above. */
function limitOf(curve) {
  const values = (curve.normal ?? curve.traced).most.filter((value) => value !== null).sort((a, b) => a - b);
  const limit = values[Math.floor(values.length * 0.98)] * 1.5;
  return values.length > 8 && limit < values.at(-1) ? limit : null;
}

/** The section. */
export function Steps({ base, version, job }) {
  const { document: curves, problem: noCurves } = useDocument(`${base}/curves`, version);
  const { document: steps, problem: noSteps } = useDocument(`${base}/steps`, version);
  const { document: alerts } = useDocument(`${base}/alerts`, version);
  const { document: spans } = useDocument(`${base}/spans`, version);
  const [kind, setKind] = useState(/** @type {string | null} */ (null));
  const [isCut, setCut] = useState(true);
  const kinds = curves?.step_curves ?? [];
  const main = kinds.find((each) => each.kind.split(":")[0] === job.step_kind) ?? kinds[0];
  const curve = kinds.find((each) => each.kind === kind) ?? main;
  const shown = useMemo(() => (curve ? merged(curve, job.started_ns) : null), [curve, job.started_ns]);
  if (!kinds.length && !steps?.kinds.length) {
    return html`<${Section} id="steps" title="Step times"><p class="muted">${(noCurves ?? noSteps)?.message ?? (curves === null ? "Reading …" : job.phase === "ended" ? "No steps." : "No steps yet.")}</p></${Section}>`;
  }
  const marks = [
    ...(spans?.spans ?? []).filter((span) => span.kind === "epoch" && span.count === 1).map((span) => ({ at: (span.start_ns - job.started_ns) / 1e9, text: `epoch ${span.label}`, colour: "line", isDashed: true })),
    ...(alerts?.alerts ?? []).map((alert) => ({ at: (alert.found_ns - job.started_ns) / 1e9, text: alert.slug, colour: "bad" })),
  ].sort((a, b) => a.at - b.at);
  const limit = curve ? limitOf(curve) : null;
  const isBand = curve?.normal && curve.normal.least.some((value, at) => value !== curve.normal.most[at]);
  const lines = shown && [
    ...(isBand ? [{ name: "most", values: shown.most, colour: "class-5", width: 0.5 }, { name: "least", values: shown.least, colour: "class-5", width: 0.5 }] : []),
    { name: isBand ? "mean" : "step", values: shown.mean, colour: "class-1" },
    { name: "traced", values: shown.traced, colour: "class-6", points: true },
  ];
  return html`<${Section} id="steps" title="Step times" note="over the time since the start; a drag zooms, a double click shows all">
    <div class="tools">
      ${kinds.length > 1 &&
      kinds.map((each) => html`<button type="button" key=${each.kind} aria-pressed=${each === curve} onClick=${() => setKind(each.kind)}>${each.kind}</button>`)}
      ${limit !== null && html`<label class="small check"><input type="checkbox" checked=${isCut} onChange=${() => setCut(!isCut)} /> cut above ${duration(limit)}</label>`}
    </div>
    ${shown &&
    html`<${Curve} key=${curve.kind} xs=${shown.times} lines=${lines} marks=${marks} band=${isBand ? [1, 2] : null} limit=${isCut && limit !== null ? limit : undefined} format=${duration} formatX=${timeOfRun} label=${`times of the ${curve.kind} steps over the run; the table below has their percentiles`} />`}
    ${!isReport && curve?.traced && html`<${Traced} base=${base} curve=${curve} />`}
    ${curves === null && html`<${Missing} problem=${noCurves} />`}
    ${steps === null ? html`<${Missing} problem=${noSteps} />` : html`<${Table} columns=${COLUMNS} rows=${steps.kinds} caption="untraced steps by kind" keyOf=${(row) => `${row.kind} ${row.key}`} />`}
  </${Section}>`;
}

/** Links to the timelines of traced steps: the last ones. */
function Traced({ base, curve }) {
  const numbers = [];
  for (const [first, last] of curve.traced_steps.toReversed()) {
    for (let number = last; number >= first && numbers.length < LINKS; number -= 1) numbers.unshift(number);
  }
  const page = base.replace("/api", "");
  return html`<p class="small">Timelines of traced steps: ${numbers.map((number) => html`<a key=${number} href=${`${page}/step/${number}?kind=${encodeURIComponent(curve.kind)}`}>${count(number)}</a> `)}</p>`;
}
