/** A sparkline: the course of a few values. */
import { html } from "../vendor/preact-htm.js";

const WIDTH = 64;
const HEIGHT = 18;

/** Values as a line from 0 to the largest; `label` describes it. */
export function Spark({ values, label }) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return null;
  const most = Math.max(...known) || 1;
  const points = known.map((value, at) => `${(at / (known.length - 1)) * WIDTH},${HEIGHT - 1 - (value / most) * (HEIGHT - 2)}`);
  return html`<svg class="spark" width=${WIDTH} height=${HEIGHT} viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${label}>
    <polyline points=${points.join(" ")} />
  </svg>`;
}
