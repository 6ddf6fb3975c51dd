/** What a job is, its figures, its downloads and orders. */
import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { isReport, reportContent } from "../../lib/documents.js";
import { Figures } from "../../lib/layout.js";
import { cores, count, dateAndTime, duration, factor, size, totalCost } from "../../lib/numbers.js";
import { Downloads } from "./downloads.js";
import { Orders } from "./orders.js";
import { lostText, stateOf } from "./state.js";

/** The head of the page of `job`; `now`: its live state, null without one. */
export function Head({ job, now }) {
  const live = now ?? job;
  const state = stateOf(live);
  const main = job.step_times.find((times) => !times.since && times.kind === job.median_kind);
  const cpu = job.job_series.cpu_cores;
  const memory = job.job_series.rss_bytes;
  const isRunning = live.state === "running";
  const spread = main?.spread;
  const figures = [
    [`${job.step_kind || ""} steps`.trim(), count(live.steps), job.epochs ? `${count(job.epochs)} epoch${job.epochs === 1 ? "" : "s"}` : null],
    [`median ${main?.kind.includes(":") ? main.kind : ""} step`.replace("  ", " "), duration(spread?.p50_ns), spread ? `p99 ${duration(spread.p99_ns)}` : null],
    isRunning && now?.now.step_ns ? ["step now", duration(now.now.step_ns), now.now.change === null ? null : `${factor(now.now.change)} of before`] : null,
    ["traced", count(live.traced), job.cost === null ? null : `cost ${totalCost(job.cost, job.steps_ns)}`],
    ["lost", html`<span class=${live.lost === 0 ? "" : "bad"}>${lostText(live)}</span>`, null],
    ["CPU", cores(cpu?.mean), job.cpus ? `of ${job.cpus}, mean` : "mean"],
    ["memory", size(memory?.max), "most"],
    now?.devices.length ? ["device", now.devices.join(" "), null] : null,
  ].filter(Boolean);
  return html`<div>
    <div class="head">
      <div>
        <h1>${job.name || job.id}</h1>
        <div class="identity">
          <span class="state"><span class=${`dot ${state.dot}`}></span>${state.word}</span>
          <span>${job.id}</span>
          <span>${job.user || "-"}@${job.host || "-"}</span>
          ${job.pid ? html`<span>pid ${job.pid}</span>` : null}
          <span>${[job.framework, job.framework_version].filter(Boolean).join(" ")}</span>
          <span>${duration(live.duration_ns)} since ${dateAndTime(job.started_ns)}</span>
          ${job.tags.map((tag) => html`<span class="pill" key=${tag}>${tag}</span>`)}
        </div>
        ${job.command ? html`<p class="command mono small">${job.command.map(quoted).join(" ")}</p>` : null}
      </div>
      ${isReport
        ? html`<${Made} />`
        : html`<div class="actions">${isRunning ? html`<${Orders} uid=${job.uid} />` : null}<${Downloads} uid=${job.uid} /></div>`}
    </div>
    <${Figures} figures=${figures} />
    ${job.warnings.map((warning) => html`<p class="notice" key=${warning.slug}>${warning.line}</p>`)}
    ${job.notes.map((text) => html`<p class="muted small" key=${text}>${text}</p>`)}
  </div>`;
}

/** A word of a command line as a shell takes it. */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

function Made() {
  const [content, setContent] = useState(/** @type {any} */ (null));
  useEffect(() => {
    reportContent().then(setContent);
  }, []);
  if (content === null) return null;
  return html`<p class="muted small">Made by tfprof ${content.version} on ${dateAndTime(content.made_ns)}.${" "}${content.limits}</p>`;
}
