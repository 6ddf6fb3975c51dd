/** A table: sortable, with a limit of rows, and with its rows as CSV. */
import { html, useMemo, useState } from "../vendor/preact-htm.js";
import { copy, csv } from "./copy.js";
import { count } from "./numbers.js";

/** Number of rows that are shown at first, and at most: more rows take a browser seconds. */
const FIRST_ROWS = 20;
const ROWS_MAX = 1000;

/**
 * A column. `value` returns what is sorted and copied, `show` what is shown (by default the value).
 * @typedef {{key: string, title: string, value: (row: any) => any, show?: (row: any) => any, isNumber?: boolean,
 *   style?: string, hint?: string}} Column
 */

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return a < b ? -1 : 1;
}

/** Return `rows` in the order of a column; rows without a value come last. */
export function ordered(rows, column, isDescending) {
  const known = rows.filter((row) => column.value(row) !== null && column.value(row) !== undefined);
  const unknown = rows.filter((row) => column.value(row) === null || column.value(row) === undefined);
  const sign = isDescending ? -1 : 1;
  return [...known].sort((a, b) => sign * compare(column.value(a), column.value(b))).concat(unknown);
}

/** A button that copies text and says so. */
export function CopyButton({ text, label }) {
  const [word, setWord] = useState(label);
  const click = async () => {
    setWord((await copy(text())) ? "copied" : "the browser refuses");
    setTimeout(() => setWord(label), 1500);
  };
  return html`<button type="button" class="plain small no-print" onClick=${click} aria-live="polite">${word}</button>`;
}

/**
 * A table of `rows`.
 * @param {{columns: Column[], rows: any[], sort?: string, isAscending?: boolean, caption: any, limit?: number,
 *   keyOf?: (row: any) => string, classOf?: (row: any) => string, onRow?: (row: any) => void, detail?: (row: any) => any, hasDetail?: (row: any) => boolean}} properties
 */
export function Table({ columns, rows, sort = null, isAscending = false, caption, limit = FIRST_ROWS, keyOf, classOf, detail, hasDetail = () => true }) {
  const [order, setOrder] = useState({ key: sort, isDescending: !isAscending });
  const [isWhole, setWhole] = useState(false);
  const [open, setOpen] = useState(/** @type {string | null} */ (null));
  const column = columns.find(({ key }) => key === order.key);
  const sorted = useMemo(
    () => (column ? ordered(rows, column, order.isDescending) : rows),
    [rows, order.key, order.isDescending],
  );
  const shown = sorted.slice(0, isWhole ? ROWS_MAX : limit);
  const click = (chosen) =>
    setOrder((old) => ({
      key: chosen.key,
      isDescending: old.key === chosen.key ? !old.isDescending : Boolean(chosen.isNumber),
    }));
  const text = () =>
    csv(
      columns.map(({ key }) => key),
      sorted.map((row) => columns.map(({ value }) => value(row))),
    );
  return html`<div>
    <div class="scroll" tabindex="0" role="region" aria-label=${typeof caption === "string" ? caption : "table"}>
      <table>
        <caption>
          ${caption} <${CopyButton} text=${text} label="Copy as CSV" />
        </caption>
        <thead>
          <tr>
            ${detail && html`<th scope="col" class="fold-cell"><span class="hidden-text">Details</span></th>`}
            ${columns.map((each) => headCell(each, order, click))}
          </tr>
        </thead>
        <tbody>
          ${shown.map((row, at) => {
            const id = keyOf ? keyOf(row) : String(at);
            const isOpen = open === id;
            return html`<${Group} key=${id}><tr class=${classOf ? classOf(row) : ""}>
                ${detail &&
                html`<td>
                  ${hasDetail(row) &&
                  html`<button
                    type="button"
                    class="plain"
                    aria-expanded=${isOpen}
                    aria-label=${`details of row ${at + 1}`}
                    onClick=${() => setOpen(isOpen ? null : id)}
                  >
                    ${isOpen ? "▾" : "▸"}
                  </button>`}
                </td>`}
                ${columns.map((each) => bodyCell(each, row))}
              </tr>
              ${isOpen && html`<tr><td></td><td colspan=${columns.length}>${detail(row)}</td></tr>`}</${Group}>`;
          })}
        </tbody>
      </table>
    </div>
    ${sorted.length > limit &&
    html`<button type="button" class="plain no-print" onClick=${() => setWhole(!isWhole)}>
      ${isWhole ? `first ${limit} rows` : sorted.length > ROWS_MAX ? `first ${count(ROWS_MAX)} rows` : `all ${sorted.length} rows`}
    </button>`}
    ${isWhole && sorted.length > ROWS_MAX && html`<p class="muted">The first ${count(ROWS_MAX)} of ${count(sorted.length)} rows are shown; the CSV has all.</p>`}
  </div>`;
}

/** Rows that move together. */
function Group({ children }) {
  return children;
}

function styleOf(column) {
  return [column.isNumber ? "number" : "", column.style ?? ""].join(" ").trim();
}

/** The heading of a column, which sorts. */
export function headCell(column, order, click) {
  const isSorted = order.key === column.key;
  return html`<th
    key=${column.key}
    scope="col"
    class=${styleOf(column)}
    aria-sort=${isSorted ? (order.isDescending ? "descending" : "ascending") : undefined}
  >
    ${column.title === ""
      ? html`<span class="hidden-text">${column.key}</span>`
      : html`<button type="button" title=${column.hint} onClick=${() => click(column)}>
          ${column.title}${isSorted ? (order.isDescending ? " ↓" : " ↑") : ""}
        </button>`}
  </th>`;
}

/** The cell of a row. */
export function bodyCell(column, row) {
  const shown = column.show ? column.show(row) : column.value(row);
  return html`<td key=${column.key} class=${styleOf(column)}>
    ${shown === null || shown === undefined ? "-" : shown}
  </td>`;
}
