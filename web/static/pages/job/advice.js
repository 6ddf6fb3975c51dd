/** The verdict, and the findings with their evidence. */
import { html } from "../../vendor/preact-htm.js";
import { Section, useSection } from "../../lib/layout.js";
import { count, duration, percent, quantity, size } from "../../lib/numbers.js";

/** The section. */
export function Advice({ base, version }) {
  const [document, instead] = useSection("advice", "Advice", `${base}/advise`, version);
  if (document === null) return instead;
  const findings = document.checkers.flatMap((checker) => checker.reports.map((report) => ({ ...report, checker })));
  const missing = document.checkers.filter((checker) => checker.missing);
  const fine = document.checkers.filter((checker) => !checker.missing && !checker.reports.length);
  return html`<${Section} id="advice" title="Advice">
    ${document.verdict ? html`<p class="verdict">${sentence(document.verdict)}</p>` : null}
    ${findings.length
      ? html`<ul class="findings">
          ${findings.map(
            (finding, at) => html`<li key=${at}>
              <h3>${finding.checker.title}${savingOf(finding) ? html` <span class="muted">(up to ${savingOf(finding)} of the time)</span>` : null}</h3>
              <p>${sentence(finding.text)}</p>
              <dl>
                ${finding.todo ? html`<dt>To do</dt><dd>${finding.todo}</dd>` : null}
                ${finding.line ? html`<dt>At</dt><dd class="mono">${finding.line}</dd>` : null}
                ${evidence(finding) ? html`<dt>Evidence</dt><dd>${evidence(finding)}</dd>` : null}
              </dl>
            </li>`,
          )}
        </ul>`
      : html`<p>No finding.</p>`}
    <p class="muted small">
      ${fine.length ? `Checked, and fine: ${fine.map((checker) => checker.title).join(", ")}. ` : ""}${missing.length
        ? `No data: ${missing.map((checker) => `${checker.title} (${checker.missing})`).join(", ")}.`
        : ""}
    </p>
  </${Section}>`;
}

function savingOf(finding) {
  return typeof finding.saving === "number" ? percent(finding.saving) : null;
}

/** How numbers of findings are shown, by the unit in their name, which is left out. */
const FORMATS = [["ns", duration], ["bytes", size]];

/** The words of a name, and the format of its number. */
function read(name) {
  const words = name.split("_");
  const [unit, format] = FORMATS.find(([each]) => words.includes(each)) ?? ["", words.at(-1) === "share" ? percent : plain];
  return [words.filter((word) => word !== unit).join(" "), format];
}

function plain(value) {
  return Number.isInteger(value) ? count(value) : quantity(value);
}

/** The numbers of a finding as text, without those of an op or a node, which its sentence has. */
function evidence(finding) {
  if (finding.checker.slug === "expensive") return "";
  return Object.entries(finding.numbers ?? {})
    .filter(([name]) => /^[a-z_]+$/.test(name))
    .filter(([, value]) => typeof value === "number" || (typeof value === "string" && value))
    .map(([name, value]) => {
      const [words, format] = read(name);
      return `${words} ${typeof value === "number" ? format(value) : value}`;
    })
    .join(" · ");
}

/** A text as a sentence; a name at its beginning stays as it is. */
function sentence(text) {
  const isWord = /^[a-z]+[ ,]/.test(text);
  return (isWord ? text.charAt(0).toUpperCase() + text.slice(1) : text) + (/[.!?]$/.test(text) ? "" : ".");
}
