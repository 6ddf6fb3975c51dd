/** A job: what it is, what is wrong with it, where its time goes. */
import { html, useEffect } from "../../vendor/preact-htm.js";
import { isReport, useDocument } from "../../lib/documents.js";
import { Bar, Notices } from "../../lib/layout.js";
import { useLive } from "../../lib/live.js";
import { Advice } from "./advice.js";
import { Breakdown } from "./breakdown.js";
import { Events } from "./events.js";
import { Head } from "./head.js";
import { Hosts } from "./hosts.js";
import { Lines } from "./lines.js";
import { Memory } from "./memory.js";
import { Ops } from "./ops.js";
import { Programs } from "./programs.js";
import { Scopes } from "./scopes.js";
import { Source } from "./source.js";
import { Spans } from "./spans.js";
import { STALE } from "./state.js";
import { Steps } from "./steps.js";

/** The page. */
export function JobPage({ uid }) {
  const { top } = useLive();
  const now = top?.jobs.find((job) => job.uid === uid) ?? null;
  const version = now === null ? "" : `${now.state} ${now.steps} ${now.traced} ${now.state === "running" ? now.duration_ns : ""}`;
  const stored = now === null ? "" : `${now.state} ${now.traced} ${now.state === "running" ? Math.floor(now.duration_ns / 6e10) : ""}`;
  const base = `/api/job/${uid}`;
  const show = useDocument(`${base}/show`, version);
  const job = show.document;
  useEffect(() => {
    document.title = job === null ? "tfprof" : `${isReport ? "tfprof report: " : ""}${job.name || job.id} - tfprof`;
  }, [job?.name]);
  const crumbs = html`<span class="muted">/</span><b>${job?.name || uid.slice(0, 8)}</b>`;
  const isRunning = (now ?? job)?.state === "running";
  const newer = !isRunning && job?.name ? top?.jobs.find((each) => each.name === job.name && each.state === "running" && each.started_ns > job.started_ns) : undefined;
  if (job === null) {
    const text = show.problem === null ? "Reading the job …" : show.problem.message;
    return html`<${Bar} crumbs=${crumbs} /><main id="content"><${Notices} /><h1>${show.problem === null ? "" : "This job cannot be shown"}</h1><p>${text}</p></main>`;
  }
  return html`<${Bar} crumbs=${crumbs} />
    <main id="content">
      <${Notices} problem=${show.problem?.message ?? ((now ?? job).state === "stale" ? STALE : null)} />
      ${newer && html`<p class="notice">A newer job of this name runs: <a href=${`/job/${newer.uid}`}>${newer.name} ${newer.id}</a></p>`}
      <${Head} job=${job} now=${now} />
      <${Advice} base=${base} version=${stored} />
      <${Steps} base=${base} version=${version} job=${job} />
      <${Breakdown} base=${base} version=${stored} />
      <${Ops} base=${base} version=${stored} job=${job} />
      <${Programs} base=${base} version=${stored} job=${job} />
      <${Scopes} base=${base} version=${stored} />
      <${Lines} base=${base} version=${stored} />
      <${Source} base=${base} version=${stored} />
      <${Memory} base=${base} version=${stored} />
      <${Hosts} base=${base} version=${version} job=${job} />
      <${Spans} base=${base} version=${version} />
      <${Events} base=${base} version=${version} job=${job} />
    </main>`;
}
