/** Tables as CSV, on the clipboard. */

/** A cell as CSV; a text that a spreadsheet would run as a formula gets an apostrophe. */
function cell(value) {
  if (typeof value === "number") return String(value);
  const text = value === null || value === undefined ? "" : String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * Return rows as CSV with a header.
 * @param {string[]} names
 * @param {unknown[][]} rows
 */
export function csv(names, rows) {
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** Put a text on the clipboard; return whether that worked. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}
