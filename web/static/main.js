/** Shows the page that the address names; in a report, the page that the report names. */
import { html, render, useEffect, useState } from "./vendor/preact-htm.js";
import { isReport, reportContent } from "./lib/documents.js";
import { Bar } from "./lib/layout.js";
import { JobsPage } from "./pages/jobs/page.js";
import { JobPage } from "./pages/job/page.js";
import { StepPage } from "./pages/step/page.js";
import { DiffPage } from "./pages/diff/page.js";

/**
 * Pages by the pattern of their addresses.
 * @type {[RegExp, (...parts: string[]) => any][]}
 */
const PAGES = [
  [/^\/$/, () => html`<${JobsPage} />`],
  [/^\/job\/([0-9a-f]{16})$/, (uid) => html`<${JobPage} uid=${uid} />`],
  [/^\/job\/([0-9a-f]{16})\/step\/([0-9]+)$/, (uid, step) => html`<${StepPage} uid=${uid} step=${step} />`],
  [/^\/diff\/([0-9a-f]{16})\/([0-9a-f]{16})$/, (before, after) => html`<${DiffPage} before=${before} after=${after} />`],
];

function Page() {
  const [path, setPath] = useState(isReport ? null : location.pathname);
  useEffect(() => {
    if (isReport) reportContent().then((content) => setPath(content.page));
  }, []);
  if (path === null) return null;
  for (const [pattern, page] of PAGES) {
    const match = pattern.exec(path);
    if (match) return page(...match.slice(1));
  }
  return html`<${Bar} /><main id="content"><h1>There is no such page</h1><p><a href="/">All jobs</a></p></main>`;
}

const place = document.getElementById("app");
place.textContent = "";
render(html`<${Page} />`, place);
