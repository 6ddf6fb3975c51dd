/** All jobs, live. */
import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact-htm.js";
import { useDocument } from "../../lib/documents.js";
import { Bar, Notices } from "../../lib/layout.js";
import { useLive } from "../../lib/live.js";
import { cores, cost, count, duration, factor, size } from "../../lib/numbers.js";
import { bodyCell, CopyButton, headCell, ordered } from "../../lib/table.js";
import { csv } from "../../lib/copy.js";
import { Spark } from "../../pictures/spark.js";
import { lostText, STALE, stateOf } from "../job/state.js";

/** Filters by state. */
const STATES = { all: () => true, running: (job) => job.state === "running", ended: (job) => job.state !== "running", slow: (job) => job.slow };

/** Smallest factor of a change that is shown. Smaller changes come and go. */
const CHANGE_MIN = 1.3;

/** The columns; `value` is what is sorted, and copied unless there is a `text`: a job without a step has no step time. */
const COLUMNS = [
  { key: "name", title: "job", value: (job) => job.name, show: nameCell, style: "name" },
  { key: "state", title: "state", value: (job) => stateOf(job).word, show: stateCell },
  { key: "step_ns", title: "time/step", value: (job) => job.now.idle_ns ?? stepOf(job), text: (job) => (job.now.idle_ns === null ? stepOf(job) : null), show: (job) => `${job.now.idle_ns === null ? "" : ">"}${duration(job.now.idle_ns ?? stepOf(job))}`, isNumber: true, hint: "the median of the last ten seconds or so; of ended jobs, the mean of all steps" },
  { key: "trend", title: "trend", value: (job) => job.now.change, show: (job) => html`<${Spark} values=${job.now.trend} label=${`step time of ${job.name}`} />`, style: "wide" },
  { key: "change", title: "change", value: (job) => (job.now.idle_ns === null ? job.now.change : Infinity), text: (job) => (job.now.idle_ns === null ? job.now.change : null), show: changeCell, isNumber: true, hint: "the step time divided by that of the minutes before" },
  { key: "steps", title: "steps", value: (job) => job.steps, show: (job) => count(job.steps), isNumber: true, style: "wide" },
  { key: "cpu_cores", title: "CPU", value: (job) => job.cpu, show: (job) => cores(job.cpu), isNumber: true, style: "wide", hint: "busy cores" },
  { key: "memory_bytes", title: "memory", value: (job) => job.memory, show: (job) => size(job.memory), isNumber: true, style: "wide" },
  { key: "devices", title: "device", value: (job) => job.devices.join(" "), show: (job) => job.devices.join(" ") || "-", style: "wide" },
  { key: "cost", title: "cost", value: (job) => job.cost, show: (job) => cost(job.cost), isNumber: true, style: "wide", hint: "extra time of traced steps" },
  { key: "lost", title: "lost", value: (job) => job.lost, show: (job) => html`<span class=${job.lost === 0 ? "" : "bad"}>${lostText(job)}</span>`, isNumber: true, style: "wide" },
  { key: "duration_ns", title: "for", value: (job) => job.duration_ns, show: (job) => duration(job.duration_ns), isNumber: true, style: "wide", hint: "time since the start, or the duration of ended jobs" },
];

/** The current step time of a job; for an ended job, the mean of all steps, as in `tfprof top`. */
function stepOf(job) {
  return job.phase === "ended" ? job.step_ns : job.now.step_ns;
}

function nameCell(job) {
  const tags = job.tags.map((tag) => html`<span class="pill" key=${tag}>${tag}</span>`);
  return html`<a href=${`/job/${job.uid}`}>${job.name || job.id}</a> ${tags}
    <div class="muted small">${job.id} · ${[job.user, job.host].filter(Boolean).join("@")}${job.pid ? ` · ${job.pid}` : ""}</div>`;
}

function stateCell(job) {
  const state = stateOf(job);
  return html`<span class="state"><span class=${`dot ${state.dot}`}></span>${state.word}</span>${job.alert
    ? html` <span class="pill alert">${job.alert}</span>`
    : null}`;
}

function changeCell(job) {
  const { change, idle_ns: idle } = job.now;
  const isSteady = change === null || (change < CHANGE_MIN && change > 1 / CHANGE_MIN);
  if (idle === null && isSteady) return "";
  return html`<span class=${job.slow ? "bad" : ""}>${idle === null ? factor(change) : "no step"}</span>`;
}

/** The jobs of `top`. Ended jobs also have the fields that only `jobs` has: tags, mean CPU, largest memory. */
function joined(top, listed) {
  const others = new Map((listed?.jobs ?? []).map((job) => [job.uid, job]));
  return top.jobs.map((job) => {
    const other = others.get(job.uid);
    const isRunning = job.state === "running";
    return {
      ...job,
      tags: other?.tags ?? [],
      cpu: isRunning ? job.now.cpu_cores : (other?.cpu_cores ?? null),
      memory: isRunning ? job.now.memory_bytes : (other?.memory_bytes ?? null),
    };
  });
}

function isFound(job, words) {
  const text = [job.name, job.user, job.host, job.id, job.uid, job.state, stateOf(job).word, job.alert, ...job.tags, ...job.devices]
    .join("\n")
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Return the rows in the order `uids`, new ones last, so that no row jumps while the mouse is over a table. */
function inOldOrder(rows, uids) {
  const places = new Map(uids.map((uid, at) => [uid, at]));
  return [...rows].sort((a, b) => (places.get(a.uid) ?? Infinity) - (places.get(b.uid) ?? Infinity));
}

/** The page. */
export function JobsPage() {
  const { top } = useLive();
  const uids = top === null ? [] : top.jobs.map((job) => `${job.uid}${job.state}`).sort();
  // Tags change without a change of the jobs: they are read again after a minute.
  const { document: listed, problem } = useDocument("/api/jobs", `${uids} ${Math.floor((top?.at_ns ?? 0) / 6e10)}`);
  const old = history.state?.jobs ?? { search: "", state: "all", order: { key: null, isDescending: true }, chosen: [] };
  const [search, setSearch] = useState(old.search);
  const [state, setState] = useState(old.state);
  const [order, setOrder] = useState(old.order);
  const [chosen, setChosen] = useState(old.chosen);
  useEffect(() => history.replaceState({ jobs: { search, state, order, chosen } }, ""), [search, state, order, chosen]);
  const [isHeld, setHeld] = useState(false);
  const last = useRef(/** @type {string[]} */ ([]));
  useEffect(() => {
    document.title = "tfprof: all jobs";
  }, []);
  const jobs = useMemo(() => (top === null ? [] : joined(top, listed)), [top, listed]);
  const pair = chosen.filter((uid) => jobs.some((job) => job.uid === uid)); // without removed jobs
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = jobs.filter((job) => STATES[state](job) && isFound(job, words));
  const column = COLUMNS.find(({ key }) => key === order.key);
  const sorted = column ? ordered(found, column, order.isDescending) : found;
  const rows = isHeld ? inOldOrder(sorted, last.current) : sorted;
  last.current = rows.map((job) => job.uid);
  const sort = ({ key, isNumber }) => {
    last.current = []; // what the user orders is not held
    setOrder((old) => ({ key, isDescending: old.key === key ? !old.isDescending : Boolean(isNumber) }));
  };
  const choose = (uid) => setChosen((old) => (old.includes(uid) ? old.filter((each) => each !== uid) : [...old, uid].slice(-2)));
  const text = () => csv(["uid", "user", "host", ...COLUMNS.map(({ key }) => key)], rows.map((job) => [job.uid, job.user, job.host, ...COLUMNS.map(({ value, text = value }) => text(job))]));
  return html`<${Bar} crumbs=${html`<span class="muted">${top === null ? "" : top.store}</span>`} />
    <main id="content">
      <${Notices} problem=${problem && !listed ? problem.message : jobs.some((job) => job.state === "stale") ? STALE : null} />
      <div class="head"><div><h1>Jobs</h1><${Hosts} top=${top} /></div></div>
      <div class="tools">
        <input type="search" placeholder="Name, user, host, tag or state" aria-label="Filter by name, user, host, tag or state" value=${search} onInput=${(event) => setSearch(event.target.value)} />
        ${Object.entries(STATES).map(
          ([name, test]) => html`<button key=${name} type="button" aria-pressed=${state === name} onClick=${() => setState(name)}>${name} ${jobs.filter(test).length}</button>`,
        )}
        ${pair.length === 2 &&
        html`<a class="button" href=${`/diff/${byStart(pair, jobs).join("/")}`}>Compare the two chosen jobs</a>`}
        <span class="end"></span>
      </div>
      ${top === null
        ? html`<p class="muted">Reading the jobs …</p>`
        : !jobs.length
          ? html`<p>No jobs yet: <code>tfprof-run python train.py</code> profiles one.</p>`
          : html`<div class="scroll" tabindex="0" role="region" aria-label="All jobs" onMouseEnter=${() => setHeld(true)} onMouseLeave=${() => setHeld(false)}
              onfocusin=${() => setHeld(true)} onfocusout=${() => setHeld(false)}>
              <table>
                <caption>${rows.length} of ${jobs.length} jobs${order.key ? "" : ", slowest change first"} <${CopyButton} text=${text} label="Copy as CSV" /></caption>
                <thead><tr><th scope="col" class="fold-cell"><span class="hidden-text">Compare</span></th>${COLUMNS.map((each) => headCell(each, order, sort))}</tr></thead>
                <tbody>
                  ${rows.map(
                    (job) => html`<tr key=${job.uid} class=${chosen.includes(job.uid) ? "selected" : ""}>
                      <td><input type="checkbox" aria-label=${`compare ${job.name} ${job.id}`} checked=${chosen.includes(job.uid)} onChange=${() => choose(job.uid)} /></td>
                      ${COLUMNS.map((each) => bodyCell(each, job))}
                    </tr>`,
                  )}
                </tbody>
              </table>
              ${!rows.length && html`<p>No job matches.</p>`}
            </div>`}
      ${(listed?.damaged ?? []).map((damage) => html`<p class="notice">${damage}</p>`)}
    </main>`;
}

function byStart(uids, jobs) {
  const start = (uid) => jobs.find((job) => job.uid === uid)?.started_ns ?? 0;
  return [...uids].sort((a, b) => start(a) - start(b));
}

function Hosts({ top }) {
  if (top === null || !top.hosts.length) return null;
  return html`<div class="identity">
    ${top.hosts.map(
      (host) =>
        html`<span key=${host.name}>${host.name}: ${cores(host.cpu_cores)} of ${host.cpus} CPUs busy, ${size(host.memory_used_bytes)} of ${size(host.memory_bytes)} in use</span>`,
    )}
  </div>`;
}
