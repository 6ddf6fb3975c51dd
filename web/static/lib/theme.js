/** Colours for canvases, from the sheet of tokens, and their changes. */
import { useEffect, useState } from "../vendor/preact-htm.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * Return the value of a token.
 * @param {string} name
 */
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Number of colours for classes. */
const CLASSES = 8;

/** Return the colours for classes, in order. */
export function classColours() {
  return Array.from({ length: CLASSES }, (_, at) => token(`class-${at + 1}`));
}

/** Luminance at which dark and light text have the same contrast. */
const MIDDLE = 0.179;

/**
 * Return the colour of text with the higher contrast on `colour`.
 * @param {string} colour such as #0072b2
 */
export function textOn(colour) {
  const [red, green, blue] = [1, 3, 5]
    .map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > MIDDLE ? "#10141a" : "#ffffff";
}

/** Return a number that changes with the theme. */
export function useTheme() {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const listener = () => setVersion((old) => old + 1);
    dark.addEventListener("change", listener);
    return () => dark.removeEventListener("change", listener);
  }, []);
  return version;
}

/** Return a class number for a name, the same in every picture. */
export function classOf(name) {
  let hash = 0;
  for (let at = 0; at < name.length; at += 1) hash = (hash * 31 + name.charCodeAt(at)) >>> 0;
  return hash % CLASSES;
}
