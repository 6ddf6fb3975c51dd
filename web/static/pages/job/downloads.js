/** The job in every format that other programs read. */
import { html } from "../../vendor/preact-htm.js";
import { useDocument } from "../../lib/documents.js";

/** A menu of the formats; `query` selects steps, and only formats with its options are shown. */
export function Downloads({ uid, query = "" }) {
  const { document: table } = useDocument("/api/formats");
  if (table === null) return null;
  const options = [...new URLSearchParams(query).keys()];
  const formats = table.formats.filter((format) => options.every((option) => format.options.includes(option)));
  return html`<details class="menu">
    <summary>Download</summary>
    <div>
      ${formats.map(
        (format) => html`<a key=${format.name} href=${`/api/job/${uid}/export/${format.name}?download=1${query ? `&${query}` : ""}`}>
          <span>${format.name}</span><span class="muted small">${format.title}${format.reader ? ` (${format.reader})` : ""}</span>
        </a>`,
      )}
      ${query === "" && html`<p class="muted small">Timelines and folders have the last traced steps, up to 200,000 executions: <code>tfprof export --steps all</code> writes all.</p>`}
    </div>
  </details>`;
}
