/**
 * A timeline on a canvas: lanes by device and thread. The wheel and w, s zoom; a drag, a and d move;
 * a click or the arrow keys choose a slice.
 */
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { cores, duration, quantity, rate, size } from "../lib/numbers.js";
import { most } from "../lib/range.js";
import { prepared, useWidth } from "../lib/size.js";
import { classColours, classOf, textOn, token, useTheme } from "../lib/theme.js";

const ROW = 20;
const GAP = 8;
const HEAD = 18;
const RULER = 24;
const CURVE = 40;
const MICRO = 1000;
/** How the values of curves are shown, by unit. */
const SHOWN = { bytes: size, "bytes/s": rate, cores };

/** The rows of a picture: where each lane and curve begins. */
function placesOf(trace) {
  const lanes = [];
  let y = RULER;
  for (const lane of trace.lanes) {
    lanes.push(y);
    y += HEAD + lane.depth * ROW + GAP;
  }
  const curves = trace.curves.map((_, at) => y + at * (HEAD + CURVE + GAP));
  return { lanes, curves, height: y + trace.curves.length * (HEAD + CURVE + GAP) };
}

/** The first slice that may be seen from `time` on; slices of one depth do not overlap. */
function firstVisible(slices, time) {
  let [low, high] = [0, slices.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices[middle].end < time && slices[middle].depth === 0) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

function niceStep(span, count) {
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

function drawRuler(context, view, width, height, origin) {
  const step = niceStep(view.end - view.start, Math.max(2, width / 130));
  context.fillStyle = token("muted");
  context.strokeStyle = token("line-soft");
  context.lineWidth = 1;
  context.beginPath();
  for (let time = Math.ceil((view.start - origin) / step) * step; time <= view.end - origin; time += step) {
    const x = ((time + origin - view.start) / (view.end - view.start)) * width;
    context.moveTo(Math.round(x) + 0.5, RULER - 6);
    context.lineTo(Math.round(x) + 0.5, height);
    context.fillText(time < 0 ? `-${duration(-time * MICRO)}` : duration(time * MICRO), x + 4, 10);
  }
  context.stroke();
}

function drawLane(context, lane, y, view, width, found, chosen, colours) {
  const scale = width / (view.end - view.start);
  const last = new Float64Array(lane.depth).fill(-1);
  for (let at = firstVisible(lane.slices, view.start); at < lane.slices.length; at += 1) {
    const slice = lane.slices[at];
    if (slice.start > view.end) break;
    if (slice.end < view.start) continue;
    const left = Math.max(0, (slice.start - view.start) * scale);
    const right = Math.min(width, (slice.end - view.start) * scale);
    const isNarrow = right - left < 1;
    if (isNarrow && right <= last[slice.depth] && slice !== chosen) continue;
    last[slice.depth] = Math.max(right, left + 1);
    const top = y + HEAD + slice.depth * ROW;
    context.globalAlpha = found(slice) ? 1 : 0.2;
    const colour = slice.category === "op" ? colours[classOf(slice.name)] : colours[6];
    context.fillStyle = colour;
    context.fillRect(left, top, Math.max(1, right - left - (right - left > 3 ? 1 : 0)), ROW - 2);
    if (right - left > 30) {
      context.fillStyle = textOn(colour);
      context.save();
      context.beginPath();
      context.rect(left, top, right - left - 4, ROW);
      context.clip();
      context.fillText(slice.name, left + 4, top + ROW / 2 - 1);
      context.restore();
    }
    if (slice === chosen) {
      context.globalAlpha = 1;
      context.strokeStyle = token("text");
      context.lineWidth = 2;
      context.strokeRect(left + 1, top + 1, Math.max(2, right - left - 3), ROW - 4);
    }
  }
  context.globalAlpha = 1;
}

/** The title of a curve, such as `step peak CPU:0 cpu, at most 4.2 MB` for `step.peak_bytes CPU:0 cpu`. */
function titleOf({ name, unit, points }) {
  const [series, ...place] = name.split(" ");
  const words = series.replace(/_(bytes_per_s|bytes|cores)$/, "").replaceAll(/[._]/g, " ");
  const highest = most(points.map(([, value]) => value));
  return `${[words, ...place].join(" ")}, at most ${(SHOWN[unit] ?? quantity)(highest)}`;
}

function drawCurve(context, curve, y, view, width) {
  const highest = most(curve.points.map(([, value]) => value)) || 1;
  const scale = width / (view.end - view.start);
  context.strokeStyle = token("class-3");
  context.lineWidth = 1.5;
  context.beginPath();
  let previous = null;
  for (const [time, value] of curve.points) {
    const x = (time - view.start) * scale;
    const top = y + HEAD + CURVE - (value / highest) * (CURVE - 2);
    if (previous === null) context.moveTo(x, top);
    else {
      context.lineTo(x, previous);
      context.lineTo(x, top);
    }
    previous = top;
  }
  if (previous !== null) context.lineTo(width, previous); // the last value holds on
  context.stroke();
}

function draw(canvas, trace, places, view, width, origin, words, chosen) {
  const context = prepared(canvas, width, places.height);
  const colours = classColours();
  context.font = `11px ${token("font")}`;
  context.textBaseline = "middle";
  drawRuler(context, view, width, places.height, origin);
  const found = (slice) => words === "" || slice.name.toLowerCase().includes(words) || String(slice.args.node ?? "").toLowerCase().includes(words);
  trace.lanes.forEach((lane, at) => {
    drawLane(context, lane, places.lanes[at], view, width, found, chosen, colours);
    context.fillStyle = token("muted");
    context.fillText(lane.name, 4, places.lanes[at] + HEAD / 2);
  });
  trace.curves.forEach((curve, at) => {
    drawCurve(context, curve, places.curves[at], view, width);
    context.fillStyle = token("muted");
    context.fillText(titleOf(curve), 4, places.curves[at] + HEAD / 2);
  });
  if (chosen !== null) drawFlows(context, trace, places, view, width, chosen);
}

function drawFlows(context, trace, places, view, width, chosen) {
  const scale = width / (view.end - view.start);
  const height = (slice) => places.lanes[slice.lane] + HEAD + slice.depth * ROW + ROW / 2;
  context.strokeStyle = token("text");
  context.lineWidth = 1.25;
  for (const { from, to } of trace.flows) {
    if (from !== chosen && to !== chosen) continue;
    const [x, end] = [(from.end - view.start) * scale, (to.start - view.start) * scale];
    context.beginPath();
    context.moveTo(x, height(from));
    context.bezierCurveTo(x + 30, height(from), end - 30, height(to), end, height(to));
    context.stroke();
  }
}

/** The timeline of `trace`, first from `start` to `end` (µs); times are shown since `start`. */
export function Timeline({ trace, start, end, chosen, onChoose, words }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const width = useWidth(box);
  const theme = useTheme();
  const places = useMemo(() => placesOf(trace), [trace]);
  const [view, setView] = useState({ start, end });
  const drag = useRef(/** @type {any} */ (null));
  useEffect(() => setView({ start, end }), [start, end]);
  useEffect(() => {
    if (!width) return undefined;
    const frame = requestAnimationFrame(() => draw(canvas.current, trace, places, view, width, start, words.toLowerCase(), chosen));
    return () => cancelAnimationFrame(frame);
  }, [trace, places, view, width, theme, words, chosen]);
  const zoom = (factor, at = 0.5) =>
    setView((old) => {
      const span = Math.max(0.01, (old.end - old.start) * factor);
      const middle = old.start + (old.end - old.start) * at;
      return { start: middle - span * at, end: middle + span * (1 - at) };
    });
  const move = (share) =>
    setView((old) => {
      const shift = (old.end - old.start) * share;
      return { start: old.start + shift, end: old.end + shift };
    });
  useEffect(() => {
    const wheel = (event) => {
      const { left } = canvas.current.getBoundingClientRect();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move((event.deltaX || event.deltaY) / 1000);
      else zoom(Math.exp(event.deltaY / 400), (event.clientX - left) / canvas.current.clientWidth);
      event.preventDefault();
    };
    canvas.current.addEventListener("wheel", wheel, { passive: false });
    return () => canvas.current?.removeEventListener("wheel", wheel);
  }, []);
  const sliceAt = (event) => {
    const { left, top } = canvas.current.getBoundingClientRect();
    const time = view.start + ((event.clientX - left) / width) * (view.end - view.start);
    const y = event.clientY - top;
    const slack = ((view.end - view.start) / width) * 2;
    const number = places.lanes.findIndex((from, at) => y >= from + HEAD && y < from + HEAD + trace.lanes[at].depth * ROW);
    if (number < 0) return null;
    const depth = Math.floor((y - places.lanes[number] - HEAD) / ROW);
    const near = trace.lanes[number].slices.filter((slice) => slice.depth === depth && slice.start - slack <= time && time <= slice.end + slack);
    return near.sort((a, b) => a.end - a.start - (b.end - b.start))[0] ?? null;
  };
  const show = (slice) => {
    onChoose(slice);
    setView((old) => {
      const span = old.end - old.start;
      const isSeen = slice.start >= old.start && slice.end <= old.end;
      return isSeen ? old : { start: (slice.start + slice.end) / 2 - span / 2, end: (slice.start + slice.end) / 2 + span / 2 };
    });
  };
  const neighbour = (sign) => {
    if (chosen === null) return trace.slices.find((slice) => slice.start >= view.start) ?? null;
    const row = trace.lanes[chosen.lane].slices.filter((slice) => slice.depth === chosen.depth);
    return row[row.indexOf(chosen) + sign] ?? null;
  };
  const across = (sign) => {
    const middle = chosen === null ? view.start : (chosen.start + chosen.end) / 2;
    for (let lane = (chosen?.lane ?? -1) + sign; lane >= 0 && lane < trace.lanes.length; lane += sign) {
      const distance = (slice) => Math.abs((slice.start + slice.end) / 2 - middle);
      const nearest = trace.lanes[lane].slices.reduce((best, slice) => (best === null || distance(slice) < distance(best) ? slice : best), null);
      if (nearest !== null) return nearest;
    }
    return null;
  };
  const keys = {
    w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => move(-0.15), d: () => move(0.15),
    0: () => setView({ start, end }),
    ArrowLeft: () => neighbour(-1), ArrowRight: () => neighbour(1), ArrowUp: () => across(-1), ArrowDown: () => across(1),
    f: () => chosen && setView({ start: chosen.start - (chosen.end - chosen.start) / 2, end: chosen.end + (chosen.end - chosen.start) / 2 }),
    Escape: () => onChoose(null),
  };
  const key = (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    const slice = keys[event.key]();
    if (slice && slice.name !== undefined) show(slice);
    event.preventDefault();
  };
  return html`<div class="timeline" ref=${box}>
    <canvas
      ref=${canvas}
      tabindex="0"
      role="img"
      aria-label="timeline; w and s zoom, a and d move, arrow keys choose, f shows the chosen slice, 0 shows the step; the table below has the slices"
      onKeyDown=${key}
      onPointerDown=${(event) => {
        if (event.button) return;
        drag.current = { x: event.clientX, y: event.clientY, view, isMoved: false };
        canvas.current.setPointerCapture(event.pointerId);
      }}
      onPointerMove=${(event) => {
        if (drag.current === null) return;
        const [across, down] = [event.clientX - drag.current.x, event.clientY - drag.current.y];
        if (Math.hypot(across, down) > 3) drag.current.isMoved = true;
        if (!drag.current.isMoved) return;
        const { start: from, end: to } = drag.current.view;
        setView({ start: from - (across / width) * (to - from), end: to - (across / width) * (to - from) });
        scrollBy(0, -down); // a timeline may be taller than the window
        drag.current.y = event.clientY;
      }}
      onPointerCancel=${() => (drag.current = null)}
      onPointerUp=${(event) => {
        if (drag.current !== null && !drag.current.isMoved) onChoose(sliceAt(event));
        drag.current = null;
      }}
    ></canvas>
  </div>`;
}
