/** The width of an element, which pictures follow. */
import { useLayoutEffect, useState } from "../vendor/preact-htm.js";

/** Return the width of the element of `reference` in pixels, 0 before it is known. */
export function useWidth(reference) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(reference.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Prepare `canvas` for drawing in CSS pixels and return its context. */
export function prepared(canvas, width, height) {
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
