/** A traced step: its timeline, and its slices as a table. */
import { html, useEffect, useMemo, useState } from "../../vendor/preact-htm.js";
import { useDocument } from "../../lib/documents.js";
import { Bar, Notices, Section } from "../../lib/layout.js";
import { useLive } from "../../lib/live.js";
import { count, counted, duration, size } from "../../lib/numbers.js";
import { Table } from "../../lib/table.js";
import { least, most } from "../../lib/range.js";
import { traceOf } from "../../lib/trace.js";
import { Timeline } from "../../pictures/timeline.js";
import { Downloads } from "../job/downloads.js";

const MICRO = 1000;

/** The part of the trace that is shown first: the step itself, or everything if the step is unknown. */
function spanOf(trace, step) {
  const own = trace.slices.find((slice) => slice.category === "step" && slice.args.step === step);
  if (own) return [own.start, own.end];
  return [least(trace.slices.map((slice) => slice.start)), most(trace.slices.map((slice) => slice.end))];
}

/** The steps before and after `step` among the traced ones of its kind. */
export function neighbours(curves, kind, step) {
  const curve = curves?.step_curves.find((each) => each.kind === kind) ?? curves?.step_curves[0];
  const before = curve?.traced_steps.findLast(([first]) => first < step);
  const after = curve?.traced_steps.find(([, last]) => last > step);
  return [before && Math.min(before[1], step - 1), after && Math.max(after[0], step + 1)];
}

/** The page. */
export function StepPage({ uid, step }) {
  const number = Number(step);
  const kind = new URLSearchParams(location.search).get("kind");
  const query = `steps=${step}${kind ? `&kind=${encodeURIComponent(kind)}` : ""}`;
  const { document: file, problem } = useDocument(`/api/job/${uid}/export/chrome?${query}`);
  const job = useLive().top?.jobs.find((each) => each.uid === uid);
  const { document: curves } = useDocument(`/api/job/${uid}/curves`);
  const trace = useMemo(() => (file === null ? null : traceOf(file)), [file]);
  const [chosen, setChosen] = useState(/** @type {any} */ (null));
  const [words, setWords] = useState("");
  useEffect(() => {
    document.title = `step ${count(number)} of ${job?.name ?? "a job"} - tfprof`;
    setChosen(null);
  }, [step, job?.name]);
  const [before, after] = neighbours(curves, kind, number);
  const link = (target, text) => (target === undefined ? null : html`<a class="button" href=${`/job/${uid}/step/${target}${location.search}`}>${text}</a>`);
  const crumbs = html`<span class="muted">/</span><a href=${`/job/${uid}`}>${job?.name || uid.slice(0, 8)}</a><span class="muted">/</span><b>step ${count(number)}</b>`;
  const found = trace === null || words === "" ? 0 : trace.slices.filter((slice) => isFound(slice, words.toLowerCase())).length;
  const [start, end] = trace !== null && trace.slices.length ? spanOf(trace, number) : [0, 1];
  return html`<${Bar} crumbs=${crumbs} />
    <main id="content">
      <${Notices} problem=${problem?.message} />
      <div class="head">
        <div><h1>${kind ? `${kind} step` : "Step"} ${count(number)}</h1>
          ${trace !== null && html`<p class="identity"><span>${duration((end - start) * MICRO)}</span><span>${counted(trace.slices.filter((slice) => slice.category === "op").length, "execution")} of ops</span></p>`}</div>
        <div class="actions">${link(before, "‹ traced before")}${link(after, "traced after ›")}<${Downloads} uid=${uid} query=${query} /></div>
      </div>
      ${trace === null && problem === null ? html`<p class="muted">Reading the step …</p>` : null}
      ${trace !== null && !trace.slices.length ? html`<p>Nothing was recorded in this step.</p>` : null}
      ${trace !== null && trace.slices.length
        ? html`<div class="tools">
              <input type="search" placeholder="Find an op or a node" aria-label="Find an op or a node" value=${words} onInput=${(event) => setWords(event.target.value)} />
              <span class="muted small" role="status">${words ? `${count(found)} found` : ""}</span>
              <span class="muted small wide keys-help">wheel, w, s: zoom · drag, a, d: move · click, arrows: choose · f: fit the chosen one · 0: the step</span>
            </div>
            <${Timeline} trace=${trace} start=${start} end=${end} chosen=${chosen} onChoose=${setChosen} words=${words} />
            <${Chosen} slice=${chosen} start=${start} lanes=${trace.lanes} />
            <${Slices} trace=${trace} start=${start} words=${words.toLowerCase()} />`
        : null}
    </main>`;
}

function isFound(slice, words) {
  return slice.name.toLowerCase().includes(words) || String(slice.args.node ?? "").toLowerCase().includes(words);
}

function Chosen({ slice, start, lanes }) {
  if (slice === null) return html`<p class="readout" aria-live="polite">Choose a slice for its details.</p>`;
  const { node, bytes, line, step, kind, ...rest } = slice.args;
  const parts = [
    duration((slice.end - slice.start) * MICRO),
    slice.start < start ? "from before the step" : `from ${duration((slice.start - start) * MICRO)}`,
    lanes[slice.lane].name,
    node && node !== slice.name ? node : null,
    bytes ? size(bytes) : null,
    line,
    ...Object.entries(rest).map(([name, value]) => `${name} ${value}`),
  ].filter(Boolean);
  return html`<p class="readout" aria-live="polite"><b>${slice.name}</b> ${parts.join(" · ")}</p>`;
}

function Slices({ trace, start, words }) {
  const rows = useMemo(() => trace.slices.filter((slice) => slice.category !== "span" && (words === "" || isFound(slice, words))), [trace, words]);
  const columns = [
    { key: "name", title: "op", value: (row) => row.name, style: "name" },
    { key: "node", title: "node", value: (row) => row.args.node ?? null, style: "name wide" },
    { key: "ns", title: "time", value: (row) => (row.end - row.start) * MICRO, show: (row) => duration((row.end - row.start) * MICRO), isNumber: true },
    { key: "start_ns", title: "from", value: (row) => (row.start - start) * MICRO, show: (row) => (row.start < start ? "before" : duration((row.start - start) * MICRO)), isNumber: true },
    { key: "bytes", title: "memory", value: (row) => row.args.bytes || null, show: (row) => (row.args.bytes ? size(row.args.bytes) : "-"), isNumber: true, style: "wide" },
    { key: "lane", title: "lane", value: (row) => trace.lanes[row.lane].name, style: "wide" },
  ];
  return html`<${Section} id="slices" title="Slices"><${Table} columns=${columns} rows=${rows} sort="ns" caption="what ran in this step, the longest first" /></${Section}>`;
}
