/** Lines of a file as code, with the time of each line in the margin. */
import { html } from "../vendor/preact-htm.js";
import { duration, percent } from "../lib/numbers.js";

/**
 * The lines with time and those around them; without the text of the file, only their numbers.
 * @param {{file: {path: string, no_text: string | null, lines: {number: number, text: string | null, time_ns: number | null,
 *   share: number | null, layer: string | null}[]}}} properties
 */
export function Code({ file }) {
  const most = Math.max(...file.lines.map((line) => line.share ?? 0));
  return html`<figure class="source">
    <figcaption><b class="mono">${file.path}</b>${file.no_text ? html` <span class="muted">without text: ${file.no_text}</span>` : null}</figcaption>
    <div class="scroll" tabindex="0" role="region" aria-label=${`code of ${file.path}`}>
      <table>
        <thead class="hidden-text"><tr><th scope="col">time/step</th><th scope="col">share</th><th scope="col">line</th><th scope="col">code</th></tr></thead>
        <tbody>
          ${file.lines.map((line, at) => {
            const isGap = at > 0 && line.number !== file.lines[at - 1].number + 1;
            return html`<tr key=${line.number} class=${isGap ? "gap" : ""} title=${line.layer || undefined}>
              <td class="number">${line.time_ns === null ? "" : duration(line.time_ns)}</td>
              <td class="margin">
                ${line.share === null ? null : html`<i style=${{ width: `${(100 * line.share) / (most || 1)}%` }}></i><span>${percent(line.share)}</span>`}
              </td>
              <td class="number muted">${line.number}</td>
              <td class="code">${line.text ?? ""}</td>
            </tr>`;
          })}
        </tbody>
      </table>
    </div>
  </figure>`;
}
