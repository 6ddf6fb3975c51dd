/** A timeline file (Chrome's trace events, as `tfprof export` writes them) as lanes. */

/**
 * A slice: times in µs since the start of the file; `depth`: how many slices of its lane are around it.
 * @typedef {{name: string, category: string, start: number, end: number, depth: number, lane: number, args: any}} Slice
 * A lane: its slices in order of their start.
 * @typedef {{name: string, depth: number, slices: Slice[]}} Lane
 */

/**
 * @param {{traceEvents: any[]}} document
 * @returns {{lanes: Lane[], slices: Slice[], curves: {name: string, unit: string, points: [number, number][]}[], flows: {from: Slice, to: Slice}[],
 *   marks: {at: number, name: string}[]}}
 */
export function traceOf(document) {
  const names = new Map();
  const orders = new Map();
  const slicesOf = new Map();
  const sliceAt = new Map();
  const curves = new Map();
  const starts = new Map();
  const ends = new Map();
  const marks = [];
  for (const event of document.traceEvents) {
    const key = `${event.pid} ${event.tid}`;
    if (event.ph === "M" && event.name === "thread_name") names.set(key, event.args.name);
    else if (event.ph === "M" && event.name === "thread_sort_index") orders.set(key, event.args.sort_index);
    else if (event.ph === "X") {
      const slice = { name: event.name, category: event.cat ?? "", start: event.ts, end: event.ts + event.dur, depth: 0, lane: 0, args: event.args ?? {} };
      if (!slicesOf.has(key)) slicesOf.set(key, []);
      slicesOf.get(key).push(slice);
      sliceAt.set(`${key} ${event.ts}`, slice);
    } else if (event.ph === "C") {
      for (const [unit, value] of Object.entries(event.args)) {
        const name = `${event.name} ${unit}`;
        if (!curves.has(name)) curves.set(name, { name: event.name, unit, points: [] });
        curves.get(name).points.push([event.ts, value]);
      }
    } else if (event.ph === "s") starts.set(event.id, sliceAt.get(`${key} ${event.ts}`)); // at the start of its slice, after it
    else if (event.ph === "f") ends.set(event.id, sliceAt.get(`${key} ${event.ts}`));
    else if (event.ph === "i" || event.ph === "I") marks.push({ at: event.ts, name: event.name });
  }
  const keys = [...slicesOf.keys()].sort((a, b) => (orders.get(a) ?? 0) - (orders.get(b) ?? 0));
  const lanes = keys.map((key, at) => laneOf(names.get(key) ?? key, slicesOf.get(key), at));
  const flows = [...starts].map(([id, from]) => ({ from, to: ends.get(id) })).filter(({ from, to }) => from && to);
  return { lanes, slices: lanes.flatMap((lane) => lane.slices), curves: [...curves.values()], flows, marks };
}

function laneOf(name, slices, number) {
  slices.sort((a, b) => a.start - b.start || b.end - a.end);
  const open = [];
  let depth = 0;
  for (const slice of slices) {
    while (open.length && open.at(-1).end <= slice.start) open.pop();
    slice.depth = open.length;
    slice.lane = number;
    depth = Math.max(depth, open.length + 1);
    open.push(slice);
  }
  return { name, depth, slices };
}
