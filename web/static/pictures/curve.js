/** Curves over steps or time, with marks; a drag zooms, a double click shows all again. */
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { duration } from "../lib/numbers.js";
import { useWidth } from "../lib/size.js";
import { token, useTheme } from "../lib/theme.js";

/**
 * A line of a picture; `values` has null where there is none. `points`: dots without a line.
 * @typedef {{name: string, values: (number | null)[], colour: string, points?: boolean, fill?: boolean, width?: number}} Line
 * A mark at a place of the axis.
 * @typedef {{at: number, text: string, colour: string, isDashed?: boolean}} Mark
 */

/** A mark that is closer than this to the mark before it is not drawn (pixels). */
const MARK_GAP = 28;
/** Height of the texts of marks, which stand above the curve (pixels). */
const MARK_TEXT = 16;

function marksPlugin(marks) {
  const draw = (plot) => {
    const { ctx, bbox } = plot;
    const ratio = globalThis.devicePixelRatio || 1;
    const end = bbox.left + bbox.width;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top - MARK_TEXT * ratio, bbox.width, bbox.height + MARK_TEXT * ratio);
    ctx.clip();
    ctx.font = `${11 * ratio}px ${token("font")}`;
    ctx.lineWidth = ratio;
    let [lastLine, lastText] = [-Infinity, -Infinity];
    for (const mark of marks) {
      const x = plot.valToPos(mark.at, "x", true);
      if (x < bbox.left || x > end || (mark.isDashed && x - lastLine < MARK_GAP * ratio)) continue;
      lastLine = mark.isDashed ? x : lastLine;
      ctx.strokeStyle = token(mark.colour);
      ctx.setLineDash(mark.isDashed ? [4 * ratio, 3 * ratio] : []);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const width = ctx.measureText(mark.text).width;
      if (x > lastText && x + width + 4 * ratio < end) {
        ctx.fillStyle = token(mark.isDashed ? "muted" : mark.colour);
        ctx.fillText(mark.text, x + 4 * ratio, bbox.top - 5 * ratio);
        lastText = x + width + 10 * ratio;
      }
    }
    ctx.restore();
  };
  return { hooks: { drawClear: draw } };
}

/** Seconds since the start of a run, so exact that marks `step` seconds apart differ. */
export function timeOfRun(seconds, step = 1) {
  if (seconds < 100) return duration(seconds * 1e9);
  const digits = step < 1 ? 2 : 0;
  const shown = Number(seconds.toFixed(digits)); // before it is split: otherwise 119.6 s are 1m 60s
  const [hours, minutes] = [Math.floor(shown / 3600), Math.floor((shown % 3600) / 60)];
  const rest = (shown % 60).toFixed(digits).padStart(step < 1 ? 5 : 2, "0");
  const text = `${hours ? `${hours}h ` : ""}${hours ? String(minutes).padStart(2, "0") : minutes}m`;
  return hours && Number(rest) === 0 ? text : `${text} ${rest}s`;
}

/**
 * A picture of `lines` over `xs`.
 * @param {{xs: number[], lines: Line[], marks?: Mark[], height?: number, format: (value: number) => string,
 *   formatX: (value: number, step?: number) => string, label: string, group?: string, legend?: boolean, band?: [number, number], limit?: number}} properties
 *   `band`: the numbers (from 1) of the lines above and below an area that is filled; `limit`: the largest value of the axis
 */
export function Curve({ xs, lines, marks = [], height = 220, format, formatX, label, group = null, legend = true, band = null, limit = Infinity }) {
  const box = useRef(null);
  const plot = useRef(null);
  const width = useWidth(box);
  const theme = useTheme();
  const [isZoomed, setZoomed] = useState(false);
  const range = useRef(/** @type {{min: number, max: number} | null} */ (null));
  const shape = JSON.stringify([lines.map(({ name }) => name), marks, theme, height, limit]);
  useEffect(() => {
    if (!width) return undefined;
    const zoom = range.current;
    const axis = { stroke: token("muted"), grid: { stroke: token("line-soft"), width: 1 }, ticks: { stroke: token("line"), width: 1 },
      font: `12px ${token("font")}` };
    const options = {
      width,
      height,
      scales: {
        x: { time: false },
        y: { range: (_, least, most) => [0, Math.min(most || 1, limit) * 1.06] },
      },
      cursor: { sync: group ? { key: group } : undefined, points: { size: 6 }, drag: { x: true, y: false }, y: false },
      legend: { show: legend, live: true },
      padding: [marks.length ? MARK_TEXT : null, null, null, null],
      axes: [
        { ...axis, values: (_, splits, at, space, step) => splits.map((value) => formatX(value, step)), space: 90, size: 30 },
        { ...axis, values: (_, splits) => splits.map((value) => (value === null ? "" : format(value))), size: 84 },
      ],
      series: [
        { label: "at", value: (_, value) => (value === null || value === undefined ? "" : formatX(value)) },
        ...lines.map((line) => ({
          label: line.name,
          stroke: token(line.colour),
          fill: line.fill ? `${token(line.colour)}22` : undefined,
          width: line.points ? 0 : (line.width ?? 1.25),
          paths: line.points ? () => null : undefined,
          points: { show: Boolean(line.points) || undefined, size: line.points ? 6 : 4, fill: token(line.colour) },
          spanGaps: true,
          value: (_, value) => (value === null || value === undefined ? "-" : format(value)),
        })),
      ],
      bands: band ? [{ series: band, fill: `${token("class-5")}44` }] : [],
      plugins: [marksPlugin(marks)],
      hooks: {
        setScale: [
          (self, key) => {
            if (key === "x" && self.data[0].length) {
              const [first, last] = [self.data[0][0], self.data[0].at(-1)];
              const { min, max } = self.scales.x;
              range.current = min > first || max < last ? { min, max } : null;
              setZoomed(range.current !== null);
            }
          },
        ],
      },
    };
    const made = new globalThis.uPlot(options, [xs, ...lines.map(({ values }) => values)], box.current);
    if (zoom) made.setScale("x", zoom);
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [width, shape]);
  useEffect(() => {
    const zoom = range.current;
    plot.current?.setData([xs, ...lines.map(({ values }) => values)], zoom === null);
    if (zoom) plot.current?.setScale("x", zoom);
  }, [xs, lines]);
  const showAll = () => plot.current?.setScale("x", { min: xs[0], max: xs.at(-1) });
  return html`<div class="picture">
    <div ref=${box} role="img" aria-label=${label}></div>
    ${isZoomed && html`<button type="button" class="plain small no-print" onClick=${showAll}>Show all</button>`}
  </div>`;
}

