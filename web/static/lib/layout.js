/** The frame of every page: its bar, notices and sections. */
import { html } from "../vendor/preact-htm.js";
import { isReport, useDocument } from "./documents.js";
import { useLive } from "./live.js";

/** The bar at the top; `crumbs`: what follows the name of the program. */
export function Bar({ crumbs = null }) {
  return html`<header class="bar">
    <a class="skip" href="#content">Skip to the content</a>
    <div>
      ${isReport ? html`<span class="brand">tfprof</span>` : html`<a class="brand" href="/">tfprof</a>`}
      <nav aria-label="Place">${crumbs}</nav>
      ${isReport ? html`<span class="state">report</span>` : html`<${Connection} />`}
    </div>
  </header>`;
}

function Connection() {
  const { top, problem, isConnected } = useLive();
  const isLive = isConnected && top !== null && problem === null;
  return html`<span class="state" role="status"
    ><span class=${isLive ? "dot running" : "dot failed"}></span>${isLive ? "live" : isConnected ? "no new figures" : "not connected"}</span
  >`;
}

/** A notice above the content of a page: what is wrong. */
export function Notices({ problem = null }) {
  const { problem: liveProblem, top } = useLive();
  const after = top === null ? "This page tries again by itself." : "This page tries again by itself; the figures are the last ones.";
  const text = liveProblem === null ? problem : `${liveProblem} ${after}`;
  return text && html`<p class="notice" role="alert">${text}</p>`;
}

/** A part of a page with a heading; `note` is beside it, `end` at the right. */
export function Section({ id, title, note = null, end = null, children }) {
  return html`<section class="section" id=${id} aria-labelledby=${`${id}-title`}>
    <header>
      <h2 id=${`${id}-title`}>${title}</h2>
      ${note && html`<p>${note}</p>`} ${end && html`<div class="end">${end}</div>`}
    </header>
    ${children}
  </section>`;
}

/** Return the document of a section, null without it, and then what is shown instead: why it cannot be read. */
export function useSection(id, title, path, version) {
  const { document, problem } = useDocument(path, version);
  return [document, problem && html`<${Section} id=${id} title=${title}><${Missing} problem=${problem} /></${Section}>`];
}

/** Why a document cannot be read. */
export function Missing({ problem }) {
  return problem && html`<p class="muted">${problem.message}</p>`;
}

/** Figures side by side: [name, value, remark]. */
export function Figures({ figures }) {
  return html`<dl class="figures">
    ${figures.map(
      ([name, value, remark]) =>
        html`<div key=${name}><dt>${name}</dt><dd>${value}${remark ? html`<small>${remark}</small>` : null}</dd></div>`,
    )}
  </dl>`;
}
