/** Orders to a running job: trace steps, end the order. */
import { html, useState } from "../../vendor/preact-htm.js";
import { Problem, read } from "../../lib/documents.js";

/** Give an order to job `uid`; the answer is a line of text. Each order needs a new token of the server. */
async function give(uid, order) {
  const form = await read("/api/form");
  const answer = await fetch(`/api/job/${uid}/order`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: form.token, order }),
  });
  const content = await answer.json();
  if (!answer.ok) return content.error;
  const [job] = content.jobs;
  if (job.obeyed === true) return `${content.order}${job.kind ? `, from ${job.kind} step ${job.step} on` : ""}`;
  return `${job.obeyed === null ? "no answer, the order may be applied" : "refused"}: ${job.text} [${job.slug}]`;
}

/** The orders, with the last answer. */
export function Orders({ uid }) {
  const [state, setState] = useState({ text: "", isBusy: false });
  const click = (order) => async () => {
    setState({ text: "waiting for the job …", isBusy: true });
    let text;
    try {
      text = await give(uid, order);
    } catch (problem) {
      text = problem instanceof Problem ? problem.message : "no connection to tfprof web";
    }
    setState({ text, isBusy: false });
  };
  return html`<span class="actions">
    <button type="button" disabled=${state.isBusy} onClick=${click("trace")}>Trace ten steps now</button>
    <button type="button" disabled=${state.isBusy} onClick=${click("end")}>Stop</button>
    <span class="muted small" role="status">${state.text}</span>
  </span>`;
}
