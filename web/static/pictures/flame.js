/** A tree as an icicle: width is time; a click or Enter shows a part of it alone. */
import { html, useEffect, useMemo, useRef, useState } from "../lib/dom.js";
import { duration, percent } from "../lib/numbers.js";
import { prepared, useWidth } from "../lib/size.js";
import { classColours, classOf, textOn, token, useTheme } from "../lib/theme.js";

const ROW = 22;
const ROWS_MAX = 24;
/** Narrower boxes are not drawn (pixels). */
const LEAST = 0.6;

/**
 * A node: {name, ns, self, children}.
 * Return the boxes of `root` in a picture of `width`: the node, its place, and its depth.
 */
function boxesOf(root, width) {
  const boxes = [];
  const pending = [{ node: root, left: 0, width, depth: 0, parent: -1 }];
  while (pending.length) {
    const box = pending.pop();
    const number = boxes.push(box) - 1;
    let left = box.left;
    for (const child of box.node.children) {
      const childWidth = box.node.ns > 0 ? (box.width * child.ns) / box.node.ns : 0;
      if (childWidth >= LEAST && box.depth + 1 < ROWS_MAX) {
        pending.push({ node: child, left, width: childWidth, depth: box.depth + 1, parent: number });
      }
      left += childWidth;
    }
  }
  return boxes;
}

function pathTo(root, node) {
  const pending = [[root, [root]]];
  while (pending.length) {
    const [current, path] = pending.pop();
    if (current === node) return path;
    for (const child of current.children) pending.push([child, [...path, child]]);
  }
  return [root];
}

function draw(canvas, boxes, width, height, chosen, found) {
  const context = prepared(canvas, width, height);
  const colours = classColours();
  context.font = `12px ${token("font")}`;
  context.textBaseline = "middle";
  for (const box of boxes) {
    const y = box.depth * ROW;
    const isFound = found === "" || box.node.name.toLowerCase().includes(found);
    context.globalAlpha = isFound ? 1 : 0.25;
    const colour = box.depth === 0 ? colours[6] : colours[classOf(box.node.name)];
    context.fillStyle = colour;
    context.fillRect(box.left, y, Math.max(0.5, box.width - 1), ROW - 1);
    if (box === chosen) {
      context.strokeStyle = token("text");
      context.lineWidth = 2;
      context.strokeRect(box.left + 1, y + 1, Math.max(1, box.width - 3), ROW - 3);
    }
    if (box.width > 34) {
      context.fillStyle = textOn(colour);
      context.save();
      context.beginPath();
      context.rect(box.left, y, box.width - 5, ROW);
      context.clip();
      context.fillText(box.node.name, box.left + 4, y + ROW / 2);
      context.restore();
    }
  }
  context.globalAlpha = 1;
}

/** The icicle of `root`; `label` describes it. */
export function Flame({ root, label }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const width = useWidth(box);
  const theme = useTheme();
  const [focus, setFocus] = useState(null);
  const [chosen, setChosen] = useState(0);
  const [search, setSearch] = useState("");
  const path = useMemo(() => pathTo(root, focus ?? root), [root, focus]);
  const shown = path.at(-1);
  const boxes = useMemo(() => boxesOf(shown, width), [shown, width]);
  const depth = Math.max(...boxes.map((each) => each.depth)) + 1;
  const height = depth * ROW;
  useEffect(() => {
    if (width) draw(canvas.current, boxes, width, height, boxes[chosen], search.toLowerCase());
  }, [boxes, width, chosen, theme, search]);
  const boxAt = (event) => {
    const { left, top } = canvas.current.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    return boxes.findIndex((each) => each.depth === Math.floor(y / ROW) && x >= each.left && x < each.left + each.width);
  };
  const open = (number) => {
    setFocus(boxes[number].node === shown && path.length > 1 ? path.at(-2) : boxes[number].node);
    setChosen(0);
  };
  const near = (wanted) => boxes.findIndex(wanted);
  const moves = {
    ArrowDown: () => near((each) => each.parent === chosen),
    ArrowUp: () => boxes[chosen].parent,
    ArrowRight: () => sibling(1),
    ArrowLeft: () => sibling(-1),
  };
  const sibling = (sign) => {
    const current = boxes[chosen];
    const row = boxes.map((each, at) => [each, at]).filter(([each]) => each.depth === current.depth).sort(([a], [b]) => a.left - b.left);
    const place = row.findIndex(([each]) => each === current) + sign;
    return row[place] ? row[place][1] : -1;
  };
  const key = (event) => {
    if (event.key in moves) {
      const number = moves[event.key]();
      if (number >= 0) setChosen(number);
      event.preventDefault();
    } else if (event.key === "Enter") open(chosen);
    else if (event.key === "Escape") setFocus(null);
  };
  const node = (boxes[chosen] ?? boxes[0]).node;
  return html`<div>
    <div class="tools">
      <input type="search" placeholder="Find in the picture" aria-label="Find in the picture" value=${search} onInput=${(event) => setSearch(event.target.value)} />
      ${path.slice(0, -1).map((each) => html`<button type="button" class="plain" key=${each.name} onClick=${() => setFocus(each)}>${each.name} ›</button>`)}
    </div>
    <div class="picture" ref=${box}>
      <canvas
        ref=${canvas}
        tabindex="0"
        role="img"
        aria-label=${`${label}; arrow keys move, Enter shows a part, Escape shows all`}
        onClick=${(event) => boxAt(event) >= 0 && open(boxAt(event))}
        onMouseMove=${(event) => boxAt(event) >= 0 && setChosen(boxAt(event))}
        onKeyDown=${key}
      ></canvas>
    </div>
    <p class="readout" aria-live="polite"><b>${node.name}</b> ${duration(node.ns)} a step, ${percent(node.share)} of all, ${duration(node.self)} itself</p>
  </div>`;
}
