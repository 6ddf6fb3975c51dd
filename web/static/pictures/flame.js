/** A tree as an icicle: width is time; a click or Enter shows a part of it alone. */
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { duration, percent } from "../lib/numbers.js";
import { prepared, useWidth } from "../lib/size.js";
import { classColours, classOf, textOn, token, useTheme } from "../lib/theme.js";

const ROW = 22;
const ROWS_MAX = 24;
/** Narrower boxes are not drawn (pixels). */
const LEAST = 0.6;

/** Between the names in the key of a node: its name after those of the nodes above. */
const BETWEEN = "\0";

function keyOf(path) {
  return path.map((node) => node.name).join(BETWEEN);
}

/**
 * A node: {name, ns, self, children}.
 * Return the boxes of `root`, whose key is `key`, in a picture of `width`: node, key, place and depth.
 */
function boxesOf(root, key, width) {
  const boxes = [];
  const pending = [{ node: root, key, left: 0, width, depth: 0, parent: -1 }];
  while (pending.length) {
    const box = pending.pop();
    const number = boxes.push(box) - 1;
    let left = box.left;
    for (const child of box.node.children) {
      const childWidth = box.node.ns > 0 ? (box.width * child.ns) / box.node.ns : 0;
      if (childWidth >= LEAST && box.depth + 1 < ROWS_MAX) {
        pending.push({ node: child, key: box.key + BETWEEN + child.name, left, width: childWidth, depth: box.depth + 1, parent: number });
      }
      left += childWidth;
    }
  }
  return boxes;
}

/** The nodes from `root` to the one of `key`, as far as they are there. */
function pathTo(root, key) {
  const path = [root];
  for (const name of key.split(BETWEEN).slice(1)) {
    const child = path.at(-1).children.find((each) => each.name === name);
    if (child === undefined) break;
    path.push(child);
  }
  return path;
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
  const [focus, setFocus] = useState("");
  const [chosenKey, setChosen] = useState("");
  const [search, setSearch] = useState("");
  const path = useMemo(() => pathTo(root, focus), [root, focus]);
  const shown = path.at(-1);
  const boxes = useMemo(() => boxesOf(shown, keyOf(path), width), [path, width]);
  const chosen = Math.max(0, boxes.findIndex((each) => each.key === chosenKey));
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
    setFocus(boxes[number].node === shown && path.length > 1 ? keyOf(path.slice(0, -1)) : boxes[number].key);
    setChosen("");
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
      if (number >= 0) setChosen(boxes[number].key);
      event.preventDefault();
    } else if (event.key === "Enter") open(chosen);
    else if (event.key === "Escape") setFocus("");
  };
  const { node } = boxes[chosen];
  return html`<div>
    <div class="tools">
      <input type="search" placeholder="Find in the picture" aria-label="Find in the picture" value=${search} onInput=${(event) => setSearch(event.target.value)} />
      ${path.slice(0, -1).map((each, at) => html`<button type="button" class="plain" key=${at} onClick=${() => setFocus(keyOf(path.slice(0, at + 1)))}>${each.name} ›</button>`)}
    </div>
    <div class="picture" ref=${box}>
      <canvas
        ref=${canvas}
        tabindex="0"
        role="img"
        aria-label=${`${label}; arrow keys move, Enter shows a part, Escape shows all`}
        onClick=${(event) => boxAt(event) >= 0 && open(boxAt(event))}
        onMouseMove=${(event) => boxAt(event) >= 0 && setChosen(boxes[boxAt(event)].key)}
        onKeyDown=${key}
      ></canvas>
    </div>
    <p class="readout" aria-live="polite"><b>${node.name}</b> ${duration(node.ns)} a step, ${percent(node.share)} of all, ${duration(node.self)} itself</p>
  </div>`;
}
